import { t } from '../language.ts';
import type { Token, Tokens } from 'marked';
import { memo, type ReactNode, Suspense, useEffect, useState } from 'react';
import { createBlockParser } from './blocks.ts';
import { CodeBlock } from './code-block.tsx';
import { Formula } from './formula.tsx';
import { FootnoteRef, Footnotes, FootnotesOf } from './footnotes.tsx';
import { PageLink } from '../ui/link.tsx';
import { citedPage, linkHost, safeLink } from './links.ts';
import { nextEnd, sliceLength } from './slices.ts';
import type { AnyToken, FootnoteToken, MathToken } from './syntax.ts';

/** Deeper nesting is rendered as plain text, so that a message can't exhaust the stack. */
const maxDepth = 24;

/**
 * Renders text of a model or a user as Markdown. It becomes a fixed set of React elements, never markup: HTML in it is shown
 * as text, links lead only to the web or to mail, and images are not loaded, because their address alone could leak
 * the conversation.
 */
export const Markdown = memo(function Markdown({ text, quiet = false }: { readonly text: string; readonly quiet?: boolean }) {
  const [parse] = useState(createBlockParser);
  const tokens = parse(useSlices(text));
  const notes = tokens.filter(isFootnote);
  const drawn = <div className={quiet ? 'markdown quiet' : 'markdown'}>{blocks(tokens, 0)}</div>;
  if (notes.length === 0) return drawn;
  return (
    <FootnotesOf labels={notes.map(({ label }) => label)}>
      {drawn}
      <Footnotes notes={notes.map(({ label, tokens: inside }) => ({ label, content: inlines(inside, 1) }))} />
    </FootnotesOf>
  );
});

/** Returns as much of a text as is drawn now. A long text that is there at once grows by slices, each in a separate task. */
function useSlices(text: string): string {
  const [drawn, setDrawn] = useState(0);
  const end = nextEnd(text, drawn);
  const isDue = end < text.length || end - drawn > sliceLength / 2;
  useEffect(() => {
    if (!isDue) return undefined;
    const timer = setTimeout(() => setDrawn(end));
    return () => clearTimeout(timer);
  }, [isDue, end]);
  return text.slice(0, end);
}

function isKnown(token: Token): token is Token & AnyToken {
  return 'type' in token;
}

function isFootnote(token: Token): token is Token & FootnoteToken {
  return token.type === 'footnote' && 'label' in token;
}

/** Uses positions as keys: while an answer is written, only its end changes. */
function each(tokens: readonly Token[] | undefined, draw: (token: AnyToken, key: number) => ReactNode): ReactNode[] {
  return (tokens ?? []).filter(isKnown).map(draw);
}

function blocks(tokens: readonly Token[] | undefined, depth: number): ReactNode[] {
  return each(tokens, (token, key) => (depth > maxDepth ? <p key={key}>{token.raw}</p> : <Block key={key} token={token} depth={depth} />));
}

function inlines(tokens: readonly Token[] | undefined, depth: number): ReactNode[] {
  return each(tokens, (token, key) => (depth > maxDepth ? token.raw : <Inline key={key} token={token} depth={depth} />));
}

/** Renders again only for another token: tokens of complete blocks stay the same objects while an answer is written. */
const Block = memo(function Block({ token, depth }: { readonly token: AnyToken; readonly depth: number }): ReactNode {
  switch (token.type) {
    case 'space':
    case 'def':
    // Footnotes are at the end.
    case 'footnote':
      return null;
    case 'math':
      return <Maths token={token} />;
    case 'heading':
      return <Heading level={token.depth}>{inlines(token.tokens, depth + 1)}</Heading>;
    case 'paragraph':
      return <p dir="auto">{inlines(token.tokens, depth + 1)}</p>;
    case 'text':
      return token.tokens === undefined ? decode(token.text) : inlines(token.tokens, depth + 1);
    case 'code':
      return <CodeBlock info={token.lang} text={token.text} complete={isComplete(token.raw)} />;
    case 'blockquote':
      return <blockquote dir="auto">{blocks(token.tokens, depth + 1)}</blockquote>;
    case 'list':
      return <List token={token} depth={depth} />;
    case 'table':
      return <Table token={token} depth={depth} />;
    case 'hr':
      return <hr />;
    case 'html':
      return <p className="raw">{token.raw}</p>;
    default:
      return <p dir="auto">{token.raw}</p>;
  }
});

function Inline({ token, depth }: { readonly token: AnyToken; readonly depth: number }): ReactNode {
  switch (token.type) {
    case 'text':
      return token.tokens === undefined ? decode(token.text) : inlines(token.tokens, depth + 1);
    case 'escape':
      return token.text;
    case 'strong':
      return <strong>{inlines(token.tokens, depth + 1)}</strong>;
    case 'em':
      return <em>{inlines(token.tokens, depth + 1)}</em>;
    case 'del':
      return <del>{inlines(token.tokens, depth + 1)}</del>;
    case 'codespan':
      return <code>{token.text}</code>;
    case 'br':
      return <br />;
    case 'link':
      return <Link href={token.href}>{inlines(token.tokens, depth + 1)}</Link>;
    case 'image':
      return <ImageLink token={token} />;
    case 'math':
      return <Maths token={token} />;
    case 'footnoteRef':
      return <FootnoteRef label={token.label} raw={token.raw} />;
    default:
      return token.raw;
  }
}

/** The page itself uses levels 1 and 2. */
function Heading({ level, children }: { readonly level: number; readonly children: ReactNode }) {
  const Tag = level <= 1 ? 'h3' : level === 2 ? 'h4' : level === 3 ? 'h5' : 'h6';
  return <Tag dir="auto">{children}</Tag>;
}

function Link({ href, children }: { readonly href: string; readonly children: ReactNode }) {
  const cited = citedPage(href);
  if (cited !== undefined) return <PageLink to={cited}>{children}</PageLink>;
  const safe = safeLink(href);
  if (safe === undefined) return <span>{children}</span>;
  return (
    <a href={safe} target="_blank" rel="noopener noreferrer nofollow" title={safe}>
      {children}
    </a>
  );
}

function ImageLink({ token }: { readonly token: Tokens.Image }) {
  const safe = safeLink(token.href);
  const label = token.text === '' ? t('Image') : t('Image: {token}', { token: token.text });
  if (safe === undefined) return <span>{label}</span>;
  return (
    <a className="image-link" href={safe} target="_blank" rel="noopener noreferrer nofollow" title={safe}>
      {label} ({linkHost(safe)})
    </a>
  );
}

/** True once the end of a code block has arrived. */
function isComplete(raw: string): boolean {
  return /\n[ \t]*(?:`{3,}|~{3,})\s*$/.test(raw.slice(-200));
}

/** A formula; in TeX until the code that draws it is loaded. */
function Maths({ token: { tex, display } }: { readonly token: MathToken }) {
  const inText = <code className="tex">{tex}</code>;
  const drawn = (
    <Suspense fallback={inText}>
      <Formula tex={tex} display={display} />
    </Suspense>
  );
  return display ? (
    <span className="formula" tabIndex={0} role="region" aria-label={t('Formula')}>
      {drawn}
    </span>
  ) : (
    drawn
  );
}

function List({ token, depth }: { readonly token: Tokens.List; readonly depth: number }) {
  const items = token.items.map((item, key) => (
    <li key={key} className={item.task ? 'task' : undefined}>
      {item.task && (
        <span role="img" aria-label={item.checked === true ? t('Done') : t('Open')}>
          {item.checked === true ? '☑' : '☐'}{' '}
        </span>
      )}
      {blocks(
        item.tokens.filter(({ type }) => type !== 'checkbox'),
        depth + 1,
      )}
    </li>
  ));
  return token.ordered ? (
    <ol dir="auto" start={token.start === '' ? 1 : token.start}>
      {items}
    </ol>
  ) : (
    <ul dir="auto">{items}</ul>
  );
}

function Table({ token, depth }: { readonly token: Tokens.Table; readonly depth: number }) {
  return (
    <div className="table-scroll" tabIndex={0} role="region" aria-label={t('Table')}>
      <table dir="auto">
        <thead>
          <tr>
            {token.header.map((cell, key) => (
              <th key={key} data-align={cell.align ?? undefined}>
                {inlines(cell.tokens, depth + 1)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {token.rows.map((row, key) => (
            <tr key={key}>
              {row.map((cell, column) => (
                <td key={column} data-align={cell.align ?? undefined}>
                  {inlines(cell.tokens, depth + 1)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const named: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: '\u00a0',
  copy: '©',
  hellip: '…',
  mdash: '—',
  ndash: '–',
};

/** Decodes the character references that occur in prose; others stay as written. */
function decode(text: string): string {
  return text.replaceAll(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z]{2,6}));/gi, (whole, decimal?: string, hex?: string, name?: string) => {
    if (name !== undefined) return named[name] ?? whole;
    const point = decimal === undefined ? Number.parseInt(hex ?? '', 16) : Number.parseInt(decimal, 10);
    return point > 0 && point <= 0x10ffff ? String.fromCodePoint(point) : whole;
  });
}
