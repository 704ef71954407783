import type { MarkedToken, Token, Tokens } from 'marked';
import type { Cut, Space } from './cut-blocks.ts';
import { cutPoint, largest } from './fitting.ts';
import { asParagraph, codeSpan, escapeMarkdown } from './markdown-source.ts';
import { isBareLink, known } from '../tree.ts';

/** An emphasis around atoms; the same object around all of them. */
interface Mark {
  readonly delimiter: string;
}

/** A word, a space, or what is never cut: a link, a span of code. */
interface Atom {
  readonly source: string;
  readonly marks: readonly Mark[];
  readonly is: 'word' | 'space' | 'break' | 'solid';
  readonly token: MarkedToken;
}

/** Cuts text of a paragraph: at line breaks, else at spaces, else where nothing else is left. The rest opens again what was open. */
export function cutInlines(tokens: readonly Token[] | undefined, { fits, isFresh }: Space): Cut | undefined {
  const atoms = withoutSpace(atomsOf(tokens, []));
  const most = largest(atoms.length, (count) => fits(sourceOf(atoms.slice(0, count))));
  const cutAt = (at: number): Cut => ({ head: sourceOf(atoms.slice(0, at)), rest: asParagraph(sourceOf(atoms.slice(at))) });
  const at = breakBefore(atoms, most);
  if (at > 0) return cutAt(at);
  if (!isFresh) return undefined;
  // A word of several tokens, such as one that is half emphasized.
  if (most > 0) return cutAt(most);
  const [first, ...others] = atoms;
  return first === undefined ? undefined : cutAtom(first, others, fits);
}

function atomsOf(tokens: readonly Token[] | undefined, marks: readonly Mark[]): Atom[] {
  return known(tokens).flatMap((token) => {
    switch (token.type) {
      case 'strong':
        return atomsOf(token.tokens, [...marks, { delimiter: token.raw.slice(0, 2) }]);
      case 'em':
        return atomsOf(token.tokens, [...marks, { delimiter: token.raw.slice(0, 1) }]);
      case 'del':
        return atomsOf(token.tokens, [...marks, { delimiter: '~~' }]);
      case 'text':
        if (token.tokens !== undefined) return atomsOf(token.tokens, marks);
        return splitText(token, marks);
      case 'br':
        return [{ source: token.raw, marks, is: 'break' as const, token }];
      case 'escape':
        return [{ source: token.raw, marks, is: 'word' as const, token }];
      default:
        return [{ source: token.raw, marks, is: 'solid' as const, token }];
    }
  });
}

function splitText(token: Tokens.Text, marks: readonly Mark[]): Atom[] {
  return token.raw
    .split(/([ \t\n]+)/)
    .filter((source) => source !== '')
    .map((source) => ({ source, marks, is: /^[ \t\n]/.test(source) ? 'space' : 'word', token }));
}

const isSpace = ({ is }: Atom): boolean => is === 'space' || is === 'break';

function withoutSpace(atoms: readonly Atom[]): readonly Atom[] {
  const from = atoms.findIndex((atom) => !isSpace(atom));
  return from === -1 ? [] : atoms.slice(from, atoms.findLastIndex((atom) => !isSpace(atom)) + 1);
}

/** Returns Markdown of atoms, with every emphasis closed. */
function sourceOf(atoms: readonly Atom[]): string {
  let source = '';
  let open: readonly Mark[] = [];
  for (const atom of withoutSpace(atoms)) {
    const kept = open.findIndex((mark, index) => atom.marks[index] !== mark);
    const common = kept === -1 ? open.length : kept;
    source += closing(open.slice(common));
    source += atom.marks
      .slice(common)
      .map(({ delimiter }) => delimiter)
      .join('');
    source += atom.source;
    open = atom.marks;
  }
  return source + closing(open);
}

const closing = (marks: readonly Mark[]): string =>
  marks
    .map(({ delimiter }) => delimiter)
    .toReversed()
    .join('');

/** Returns the last place up to `most` where text may be cut: a line break in the second half, else any space; 0 for none. */
function breakBefore(atoms: readonly Atom[], most: number): number {
  const last = (is: (atom: Atom) => boolean): number => {
    for (let at = most; at > 0; at -= 1) {
      const atom = atoms[at];
      if (atom !== undefined && is(atom)) return at;
    }
    return 0;
  };
  const line = last(({ is }) => is === 'break');
  return line >= most / 2 ? line : last(isSpace);
}

/** Cuts what does not fit alone. What cannot be cut becomes text first, which is then the rest. */
function cutAtom(atom: Atom, others: readonly Atom[], fits: (source: string) => boolean): Cut | undefined {
  const { token } = atom;
  const as = (source: string): Atom => ({ ...atom, source });
  const rewritten = (atoms: readonly Atom[]): Cut => ({ head: '', rest: asParagraph(sourceOf([...atoms, ...others])) });
  switch (token.type) {
    case 'link': {
      const address: Atom[] = [
        { ...atom, source: ' ', is: 'space' },
        { ...atom, source: escapeMarkdown(token.href), is: 'word' },
      ];
      return rewritten(isBareLink(token) ? address : [...atomsOf(token.tokens, atom.marks), ...address]);
    }
    case 'image':
      return rewritten([as(escapeMarkdown(`${token.text} ${token.href}`))]);
    case 'codespan': {
      const at = cutPoint(token.text, (head) => fits(sourceOf([as(codeSpan(head.trim()))])));
      if (at === 0) return rewritten([as(escapeMarkdown(token.text))]);
      const [head, rest] = [token.text.slice(0, at).trim(), token.text.slice(at).trim()];
      return { head: sourceOf([as(codeSpan(head))]), rest: sourceOf([...(rest === '' ? [] : [as(codeSpan(rest))]), ...others]) };
    }
    case 'text': {
      const { source } = atom;
      const found = cutPoint(source, (head) => fits(sourceOf([as(head)])));
      // Neither a reference to a character nor a backslash is separated from what follows it.
      const at = found - (/(?:&#?\w{0,8}|\\)$/.exec(source.slice(0, found))?.[0].length ?? 0);
      if (at <= 0) return undefined;
      return { head: sourceOf([as(source.slice(0, at))]), rest: asParagraph(sourceOf([as(source.slice(at)), ...others])) };
    }
    default:
      return token.type === 'escape' ? undefined : rewritten([as(escapeMarkdown(token.raw))]);
  }
}
