/** A line of IRC: tags (IRCv3), source, command and parameters. */
export interface Line {
  readonly tags: ReadonlyMap<string, string>;
  readonly source: string;
  readonly command: string;
  readonly params: readonly string[];
}

/** Longest line that is read, with its tags (IRCv3 message-tags: 8191 and 512 bytes). */
export const longestLine = 8_703;

const noTags: ReadonlyMap<string, string> = new Map();
const unescaped: Readonly<Record<string, string>> = { ':': ';', s: ' ', '\\': '\\', r: '\r', n: '\n' };

/** Parses a line without its end; undefined when it has no command. */
export function parseLine(text: string): Line | undefined {
  let at = 0;
  const take = (): string => {
    const end = text.indexOf(' ', at);
    const word = text.slice(at, end === -1 ? undefined : end);
    at = end === -1 ? text.length : end;
    while (text[at] === ' ') at += 1;
    return word;
  };
  const tags = text.startsWith('@') ? parseTags(take().slice(1)) : noTags;
  const source = text[at] === ':' ? take().slice(1) : '';
  const command = take().toUpperCase();
  if (!/^(?:[A-Z]+|\d{3})$/.test(command)) return undefined;
  const params: string[] = [];
  while (at < text.length) {
    if (text[at] === ':') {
      params.push(text.slice(at + 1));
      break;
    }
    params.push(take());
  }
  return { tags, source, command, params };
}

function parseTags(text: string): ReadonlyMap<string, string> {
  const tags = new Map<string, string>();
  for (const tag of text.split(';')) {
    const end = tag.indexOf('=');
    const name = end === -1 ? tag : tag.slice(0, end);
    const value = end === -1 ? '' : tag.slice(end + 1);
    if (name !== '') tags.set(name, value.includes('\\') ? value.replaceAll(/\\(.?)/gs, (_all, char: string) => unescaped[char] ?? char) : value);
  }
  return tags;
}

/** Removes what would end a line, or begin another one: the text of a message must not become a command. */
const safe = (text: string): string => text.toWellFormed().replaceAll(/[\r\n\0]/g, ' ');

/** Formats a line with its end. Only the last parameter may have spaces, be empty, or begin with a colon. */
export function formatLine(command: string, params: readonly string[] = [], tags: Readonly<Record<string, string>> = {}): string {
  const words = params.map((param, index) => {
    const text = safe(param);
    if (index === params.length - 1) return text === '' || text.includes(' ') || text.startsWith(':') ? `:${text}` : text;
    if (text === '' || text.includes(' ') || text.startsWith(':')) throw new RangeError(`${command}: parameter ${index + 1} must be one word`);
    return text;
  });
  const named = Object.entries(tags).map(([name, value]) => `${name}=${value.replaceAll(/[;\s\\]/g, '_')}`);
  return `${named.length === 0 ? '' : `@${named.join(';')} `}${[command, ...words].join(' ')}\r\n`;
}

export interface Source {
  readonly nick: string;
  readonly user: string;
  readonly host: string;
}

/** Splits `nick!user@host`. */
export function parseSource(source: string): Source {
  const [, nick = source, user = '', host = ''] = /^([^!@]+)(?:!([^@]*))?(?:@(.*))?$/.exec(source) ?? [];
  return { nick, user, host };
}

/** Returns how a network compares names (`CASEMAPPING`). */
export function foldingOf(mapping: string): (name: string) => string {
  if (mapping === 'ascii') return (name) => name.replaceAll(/[A-Z]/g, (char) => char.toLowerCase());
  const pairs: Readonly<Record<string, string>> = { '[': '{', ']': '}', '\\': '|', ...(mapping !== 'strict-rfc1459' && { '~': '^' }) };
  return (name) => name.replaceAll(/[A-Z[\]\\~]/g, (char) => pairs[char] ?? char.toLowerCase());
}
