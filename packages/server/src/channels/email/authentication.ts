import { domainOf } from './address.ts';

interface Result {
  readonly method: string;
  readonly result: string;
  readonly properties: ReadonlyMap<string, string>;
}

interface Results {
  readonly server: string;
  readonly results: readonly Result[];
}

/** Longest header that is read. */
const most = 16_384;

/**
 * Whether the receiving server vouches that a mail comes from the domain of its From address: DMARC passed, or a signature (DKIM) of this domain
 * or one above it. `headers` are the values of Authentication-Results (RFC 8601) in their order: only the topmost was surely added by the receiving
 * server, of those with the name `authServId` when there is one. What it contains was partly written by the sender, so it is parsed as a whole.
 */
export function isVouchedFor(from: string, headers: readonly string[], authServId: string | undefined): boolean {
  const parsed = headers.slice(0, 20).map(parseResults);
  const own = authServId === undefined ? parsed[0] : parsed.find((one) => one?.server === authServId.toLowerCase());
  if (own === undefined) return false;
  const domain = domainOf(from);
  const dmarc = own.results.filter(({ method }) => method === 'dmarc');
  const isDmarc = ({ result, properties }: Result) => result === 'pass' && (properties.get('header.from') ?? domain) === domain;
  if (dmarc.length > 0 && !dmarc.every(({ result }) => result === 'pass' || result === 'none')) return false;
  return dmarc.some(isDmarc) || own.results.some((one) => one.method === 'dkim' && one.result === 'pass' && isAligned(domain, one.properties));
}

function isAligned(domain: string, properties: ReadonlyMap<string, string>): boolean {
  const identity = properties.get('header.i');
  const signer = properties.get('header.d') ?? (identity === undefined ? undefined : domainOf(identity));
  return signer !== undefined && signer.includes('.') && (domain === signer || domain.endsWith(`.${signer}`));
}

function parseResults(header: string): Results | undefined {
  const parts = header.length > most ? undefined : partsOf(header);
  const [first, ...rest] = parts ?? [];
  const [server, version] = first ?? [];
  if (server === undefined || (version !== undefined && version !== '1')) return undefined;
  const results: Result[] = [];
  for (const tokens of rest) {
    const [verdict, ...properties] = tokens;
    const [method, result] = pairOf(verdict ?? '');
    if (result === undefined) continue;
    results.push({
      method: method.split('/')[0] ?? method,
      result,
      properties: new Map(
        properties.flatMap((token) => {
          const [name, value] = pairOf(token);
          return value === undefined ? [] : [[name, value] as const];
        }),
      ),
    });
  }
  return { server, results };
}

function pairOf(token: string): [string, string?] {
  const at = token.indexOf('=');
  return at === -1 ? [token] : [token.slice(0, at), token.slice(at + 1)];
}

/**
 * Returns the tokens between semicolons, in lower case, without comments and spaces around `=`; undefined when a comment or a quoted string has
 * no end, so that nothing of it can be believed.
 */
function partsOf(header: string): string[][] | undefined {
  const parts: string[][] = [[]];
  let token = '';
  let depth = 0;
  let isQuoted = false;
  const flush = () => {
    if (token !== '') parts.at(-1)?.push(token.toLowerCase());
    token = '';
  };
  for (let at = 0; at < header.length; at += 1) {
    const char = header.charAt(at);
    if (char === '\\' && (isQuoted || depth > 0)) {
      at += 1;
      if (isQuoted) token += header.charAt(at);
    } else if (isQuoted) {
      if (char === '"') isQuoted = false;
      else token += char;
    } else if (char === '(') depth += 1;
    else if (depth > 0) depth -= char === ')' ? 1 : 0;
    else if (char === '"') isQuoted = true;
    else if (char === ';') {
      flush();
      parts.push([]);
    } else if (/\s/.test(char)) flush();
    else token += char;
  }
  flush();
  return depth > 0 || isQuoted ? undefined : parts.map(joinPairs);
}

/** Joins `a`, `=`, `b`: spaces are permitted around the sign. */
function joinPairs(tokens: readonly string[]): string[] {
  const joined: string[] = [];
  for (const token of tokens) {
    const last = joined.at(-1);
    if (last !== undefined && (token.startsWith('=') || (last.endsWith('=') && !last.slice(0, -1).includes('='))))
      joined[joined.length - 1] = last + token;
    else joined.push(token);
  }
  return joined;
}
