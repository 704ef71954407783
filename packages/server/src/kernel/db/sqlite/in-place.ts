import { statSync } from 'node:fs';
import { basename } from 'node:path';

/** What to say once the files of a database are not those that are open. */
export function replacedFiles(fault: string): string {
  return `The database files were changed under the running daemon (${fault}): nothing is stored any more, because a restart would not find it. Stop the daemon, put the right files in place, and start it again`;
}

/**
 * Returns a check whether open files are still those that a restart would find. It says what happened to them, and costs two system
 * calls: few enough to make before each acknowledgement.
 */
export function watchPlace(files: readonly string[]): () => string | undefined {
  const known = new Map<string, string>();
  return () => {
    for (const file of files) {
      const found = identityOf(file);
      const before = known.get(file);
      if (before === undefined) {
        if (found !== undefined && found !== missing) known.set(file, found);
      } else if (found === missing) return `${basename(file)} was removed`;
      else if (found !== undefined && found !== before) return `${basename(file)} was replaced by another file`;
    }
    return undefined;
  };
}

const missing = 'missing';

/** Undefined when nothing can be said. */
function identityOf(file: string): string | undefined {
  try {
    const stat = statSync(file, { throwIfNoEntry: false });
    return stat === undefined ? missing : `${stat.dev}:${stat.ino}`;
  } catch {
    return undefined;
  }
}
