import { AppError } from '../../../kernel/app-error.ts';
import { dotted, type Path } from '../../../kernel/config/config-error.ts';

/** Keys that decide who may do what, by their beginning; `*` stands for any name. */
const protectedKeys: readonly Path[] = [
  ['security'],
  ['gateway', 'tls'],
  ['gateway', 'tokens'],
  ['gateway', 'host'],
  ['gateway', 'port'],
  ['gateway', 'trustedProxies'],
  ['agents'],
  ['channels'],
  ['integrations'],
  ['providers'],
  ['approvals'],
  ['exec'],
  ['secrets'],
  ['storage'],
  // A program that the daemon starts, and where stored secrets may be typed.
  ['browser', 'program'],
  ['browser', 'secrets'],
  ['daemon', 'logging'],
];

const exceptions: readonly Path[] = [
  ['agents', '*', 'maxSteps'],
  ['agents', '*', 'operationModels'],
  ['agents', '*', 'model'],
  ['agents', '*', 'provider'],
  ['channels', '*', 'mediaProcessing'],
  ['integrations', 'mcp', 'servers'],
];

const begins = (path: Path, beginning: Path) => beginning.every((part, index) => part === '*' || path[index] === part);

/** Returns the keys that differ between two documents and need a confirmation by an owner. */
export function protectedChanges(before: unknown, after: unknown): string[] {
  const found: string[] = [];
  const compare = (one: unknown, other: unknown, path: Path): void => {
    if (JSON.stringify(one) === JSON.stringify(other)) return;
    if (exceptions.some((exception) => begins(path, exception))) return;
    const isProtected = protectedKeys.some((key) => begins(path, key));
    // Below `agents.*` some keys are not protected; an entry that comes or goes is.
    const isEntry = one === undefined || other === undefined;
    const mayGoOn =
      !isProtected || (!isEntry && exceptions.some((exception) => path.length < exception.length && begins(path, exception.slice(0, path.length))));
    const [left, right] = [sectionOf(one), sectionOf(other)];
    const keys = left === undefined || right === undefined ? [] : [...new Set([...Object.keys(left), ...Object.keys(right)])];
    if (mayGoOn && keys.length > 0) for (const key of keys) compare(left?.[key], right?.[key], [...path, key]);
    else if (isProtected) found.push(dotted(path));
  };
  compare(before, after, []);
  return found;
}

/** A part that is missing counts as an empty section next to one. */
function sectionOf(value: unknown): Readonly<Record<string, unknown>> | undefined {
  if (value === undefined || value === null) return {};
  return typeof value === 'object' && !Array.isArray(value) ? { ...value } : undefined;
}

/** Refuses changes of protected keys without a confirmation, or by somebody else than an owner. */
export function requireOwner(keys: readonly string[], { confirm, isOwner }: { readonly confirm: boolean; readonly isOwner: boolean }): void {
  if (keys.length === 0) return;
  const what = `${keys.slice(0, 5).join(', ')}${keys.length > 5 ? ` and ${keys.length - 5} more` : ''}`;
  const noun = keys.length === 1 ? 'is a protected key' : 'are protected keys';
  if (!isOwner)
    throw new AppError(
      'denied',
      `${what} ${noun}: only an owner may change ${keys.length === 1 ? 'it' : 'them'} (a token with scope "*", or the socket of the home folder), with confirm: true`,
      {
        param: 'confirm',
      },
    );
  if (!confirm)
    throw new AppError('precondition_failed', `${what} ${noun}: repeat the call with confirm: true to change ${keys.length === 1 ? 'it' : 'them'}`, {
      param: 'confirm',
    });
}
