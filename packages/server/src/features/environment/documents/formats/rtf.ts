import { Refused, type Sink } from './sink.ts';
import { Table } from './table.ts';

const maxGroups = 1000;
/** Groups that hold no text of the document. */
const skippedGroups = new Set(
  'fonttbl colortbl stylesheet info pict object header headerl headerr headerf footer footerl footerr footerf themedata datastore listtable listoverridetable generator fldinst xmlnstbl rsidtbl'.split(
    ' ',
  ),
);
const marks: ReadonlyMap<string, string> = new Map([
  ['line', '\n'],
  ['tab', '\t'],
  ['emdash', '—'],
  ['endash', '–'],
  ['lquote', '‘'],
  ['rquote', '’'],
  ['ldblquote', '“'],
  ['rdblquote', '”'],
  ['bullet', '•'],
]);

interface Group {
  isSkipped: boolean;
  isHidden: boolean;
  /** Characters that replace one that old readers cannot show. */
  unicodeSkip: number;
}

/** RTF: paragraphs and tables. */
export function readRtf(text: string, sink: Sink): void {
  const ansi = new TextDecoder('windows-1252');
  const groups: Group[] = [{ isSkipped: false, isHidden: false, unicodeSkip: 1 }];
  let [out, cells, toSkip] = ['', [] as string[], 0];
  let table: Table | undefined;
  const group = () => groups.at(-1) ?? { isSkipped: true, isHidden: false, unicodeSkip: 1 };
  const put = (shown: string) => {
    if (toSkip > 0) toSkip -= 1;
    else if (!group().isSkipped && !group().isHidden) out += shown;
  };
  const endTable = () => {
    table?.end();
    table = undefined;
  };
  const token = /\\(?:([a-z]{1,32})(-?\d{1,10})? ?|'([0-9a-f]{2})|([^a-z]))|([{}])|[\r\n]+|([^\\{}\r\n]+)/gi;
  for (let found = token.exec(text); found !== null; found = token.exec(text)) {
    const [, word, number, byte, symbol, brace, plain] = found;
    if (brace === '{') {
      if (groups.length >= maxGroups) throw new Refused('too_large', `nests more than ${maxGroups} groups`);
      groups.push({ ...group() });
    } else if (brace === '}') {
      if (groups.length > 1) groups.pop();
      toSkip = 0;
    } else if (plain !== undefined) {
      const skip = Math.min(toSkip, plain.length);
      toSkip -= skip;
      if (skip < plain.length) put(plain.slice(skip));
    } else if (byte !== undefined) put(ansi.decode(Uint8Array.of(Number.parseInt(byte, 16))));
    else if (symbol !== undefined) {
      if (symbol === '*') group().isSkipped = true;
      else if (symbol === '~') put(' ');
      else if (/[\\{}]/.test(symbol)) put(symbol);
    } else if (word !== undefined) command(word, number === undefined ? undefined : Number(number));
  }
  endParagraph();
  endTable();
  if (groups.length > 1) sink.note('The RTF file ends before its last group does.');

  function command(word: string, value: number | undefined): void {
    if (skippedGroups.has(word)) group().isSkipped = true;
    else if (word === 'v') group().isHidden = value !== 0;
    else if (word === 'uc') group().unicodeSkip = Math.min(16, Math.max(0, value ?? 1));
    else if (word === 'u' && value !== undefined) {
      put(String.fromCharCode(value < 0 ? value + 65_536 : value));
      toSkip = group().unicodeSkip;
    } else if (word === 'bin') token.lastIndex += Math.max(0, value ?? 0);
    else if (group().isSkipped) return;
    else if (word === 'par' || word === 'sect' || word === 'page') endParagraph();
    else if (word === 'cell') {
      cells.push(out);
      out = '';
    } else if (word === 'row') {
      table ??= new Table(sink);
      table.row(cells);
      cells = [];
    } else {
      const mark = marks.get(word);
      if (mark !== undefined) put(mark);
    }
  }

  function endParagraph(): void {
    if (cells.length > 0) {
      out += ' ';
      return;
    }
    if (out.trim() !== '') endTable();
    sink.paragraph(out);
    out = '';
  }
}
