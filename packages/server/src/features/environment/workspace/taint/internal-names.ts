/** As a file system that does not tell cases apart would look it up. */
export const foldName = (name: string): string => name.normalize('NFKC').toLowerCase();

/** True for what nobody reads by name: repositories, whose settings name programs, and what the daemon keeps for itself. */
export function isInternal(path: string): boolean {
  return path.split('/').some((name) => /^\.(?:git|gatehouse)$/.test(foldName(name)));
}
