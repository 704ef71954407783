import { readFileSync } from 'node:fs';

/** Returns the ids of a system user, for programs that refuse to run as root; empty for anybody but root. */
export function unprivileged(user: 'postgres' | 'nobody'): { readonly uid?: number; readonly gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const found = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
    .find(([name]) => name === user);
  if (found === undefined) throw new Error(`The user "${user}" is missing`);
  return { uid: Number(found[2]), gid: Number(found[3]) };
}
