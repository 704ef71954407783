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
  let rest = text;
  const take = (): string => {
    const end = rest.indexOf(' ');
    const word = end === -1 ? rest : rest.slice(0, end);
    rest = end === -1 ? '' : rest.slice(end + 1).replace(/^ +/, '');
    return word;
  };
  const tags = rest.startsWith('@') ? parseTags(take().slice(1)) : noTags;
  const source = rest.startsWith(':') ? take().slice(1) : '';
  const command = take().toUpperCase();
  if (!/^(?:[A-Z]+|\d{3})$/.test(command)) return undefined;
  const params: string[] = [];
  while (rest !== '') {
    if (rest.startsWith(':')) {
      params.push(rest.slice(1));
      break;
    }
    params.push(take());
  }
  return { tags, source, command, params };
}

function parseTags(text: string): ReadonlyMap<string, string> {
  const tags = new Map<string, string>();
  for (const tag of text.split(';')) {
    const [name = '', ...value] = tag.split('=');
    if (name !== '')
      tags.set(
        name,
        value.join('=').replaceAll(/\\(.?)/gs, (_all, char: string) => unescaped[char] ?? char),
      );
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
