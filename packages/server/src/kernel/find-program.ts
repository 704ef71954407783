import { accessSync, constants, statSync } from 'node:fs';

/** Path of a program of the host, or undefined when it is not installed. */
export type FindProgram = (name: string) => string | undefined;

const folders = ['/usr/local/bin', '/usr/bin', '/bin', '/run/current-system/sw/bin'];

/** Searches the system folders. Ignores PATH: a folder on it may belong to somebody else. */
export function findProgram(name: string): string | undefined {
  return folders.map((folder) => `${folder}/${name}`).find(isProgram);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
