import { AppError } from '../../../../kernel/app-error.ts';

/** A folder of a public repository; the address does not say where the branch ends and the path begins. */
export interface TreeUrl {
  readonly owner: string;
  readonly repo: string;
  /** Branch and path, at least one name each. */
  readonly names: readonly string[];
}

const form = 'https://github.com/{owner}/{repo}/tree/{branch}/{path}';
const maxNames = 32;

/** Parses an address of the only supported form (json-rpc.md §4 skills); fails with `invalid_params`. */
export function parseTreeUrl(text: string): TreeUrl {
  const wrong = (why: string) => new AppError('invalid_params', `url: ${why}; expected ${form}`, { param: 'url' });
  // A browser would drop tabs, line ends and backslashes; what looks like one address must not be another.
  if (!/^[\u0021-\u007e\u00a1-\uffff]+$/u.test(text) || text.includes('\\')) throw wrong('it has characters that are not allowed in an address');
  const url = URL.parse(/^github\.com\//i.test(text) ? `https://${text}` : text);
  if (url === null) throw wrong('it is not an address');
  if (url.protocol !== 'https:' || url.host !== 'github.com' || url.username !== '' || url.password !== '') throw wrong('expected github.com');
  // URL.parse resolves "..", also encoded, so check for it first.
  if (/(?:^|\/)(?:\.|%2e){1,2}(?:\/|$)/i.test(text.replace(/[?#].*$/, ''))) throw wrong('it has "." or ".." in it');
  const parts = url.pathname.replace(/\/$/, '').split('/').slice(1).map(decode);
  const [owner = '', repo = '', tree, ...names] = parts.map((part) => part ?? '');
  if (tree !== 'tree' || !/^[A-Za-z0-9][A-Za-z0-9-]{0,38}$/.test(owner) || !/^(?!\.{1,2}$)[\w.-]{1,100}$/.test(repo))
    throw wrong('it does not name a folder of a repository');
  if (names.length < 2) throw wrong('it does not name a folder of a branch');
  if (names.length > maxNames || names.some((name) => name === '' || name === '.' || name === '..' || /[/\\\u0000-\u001f\u007f]/.test(name)))
    throw wrong('its path cannot be one of a repository');
  return { owner, repo, names };
}

function decode(part: string): string | undefined {
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined;
  }
}
