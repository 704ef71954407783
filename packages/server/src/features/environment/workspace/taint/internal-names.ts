/** Folds a name like a case-insensitive file system. */
export const foldName = (name: string): string => name.normalize('NFKC').toLowerCase();

/** Whether a path may not be read by name: repositories, whose settings name programs, and daemon files. */
export function isInternal(path: string): boolean {
  return path.split('/').some((name) => /^\.(?:git|gatehouse)$/.test(foldName(name)));
}
