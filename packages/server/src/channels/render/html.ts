import type { MarkedToken, Tokens } from 'marked';
import { escapeHtml } from './flavours.ts';
import { languageOf } from './lines.ts';
import { decodeText, isBareLink, known, linkAddress } from './tree.ts';

const schemes = new Set(['http:', 'https:', 'mailto:']);

/** Renders blocks as HTML without attributes but addresses, first numbers and languages. Images become links: nothing is loaded. */
export function renderHtml(tokens: readonly MarkedToken[]): string {
  return tokens.map(block).join('');
}

/** Returns a complete document. */
export const htmlDocument = (body: string): string => `<!DOCTYPE html><html><head><meta charset="utf-8"></head><body>${body}</body></html>`;

function block(token: MarkedToken): string {
  switch (token.type) {
    case 'space':
    case 'def':
      return '';
    case 'heading':
      return `<h${token.depth}>${inlines(token.tokens)}</h${token.depth}>`;
    case 'paragraph':
      return `<p>${inlines(token.tokens)}</p>`;
    case 'code': {
      const language = languageOf(token);
      return `<pre><code${language === '' ? '' : ` class="language-${language}"`}>${escapeHtml(token.text)}</code></pre>`;
    }
    case 'blockquote':
      return `<blockquote>${renderHtml(known(token.tokens))}</blockquote>`;
    case 'list':
      return list(token);
    case 'table':
      return table(token);
    case 'hr':
      return '<hr>';
    case 'html':
      return `<p>${escapeHtml(token.text.trimEnd()).replaceAll('\n', '<br>')}</p>`;
    default:
      return inline(token);
  }
}

function list({ items, ordered, start }: Tokens.List): string {
  const inner = items.map(({ tokens }) => `<li>${renderHtml(known(tokens))}</li>`).join('');
  if (!ordered) return `<ul>${inner}</ul>`;
  return start === '' || start === 1 ? `<ol>${inner}</ol>` : `<ol start="${start}">${inner}</ol>`;
}

function table({ header, rows }: Tokens.Table): string {
  const row = (cells: readonly Tokens.TableCell[], tag: 'td' | 'th') =>
    `<tr>${cells.map(({ tokens }) => `<${tag}>${inlines(tokens)}</${tag}>`).join('')}</tr>`;
  const body = rows.map((cells) => row(cells, 'td')).join('');
  return `<table><thead>${row(header, 'th')}</thead>${body === '' ? '' : `<tbody>${body}</tbody>`}</table>`;
}

const inlines = (tokens: Tokens.Paragraph['tokens'] | undefined): string => known(tokens).map(inline).join('');

function inline(token: MarkedToken): string {
  switch (token.type) {
    case 'text':
      return token.tokens === undefined ? escapeHtml(decodeText(token.raw)) : inlines(token.tokens);
    case 'escape':
      return escapeHtml(token.text);
    case 'strong':
      return `<strong>${inlines(token.tokens)}</strong>`;
    case 'em':
      return `<em>${inlines(token.tokens)}</em>`;
    case 'del':
      return `<del>${inlines(token.tokens)}</del>`;
    case 'codespan':
      return `<code>${escapeHtml(token.text)}</code>`;
    case 'br':
      return '<br>';
    case 'link':
      return link(token, inlines(token.tokens));
    case 'image':
      return link(token, escapeHtml(decodeText(token.text)));
    case 'checkbox':
      return token.checked ? '☑ ' : '☐ ';
    default:
      return escapeHtml(token.raw);
  }
}

function link(token: Tokens.Link | Tokens.Image, label: string): string {
  const shown = label.trim() === '' ? escapeHtml(token.href) : label;
  const address = linkAddress(token.href, schemes);
  if (address !== undefined) return `<a href="${escapeHtml(address)}">${shown}</a>`;
  return isBareLink(token) || token.href === '' || label.trim() === '' ? shown : `${shown} (${escapeHtml(token.href)})`;
}
