import { statSync } from 'node:fs';
import { basename } from 'node:path';

/** Returns the message for database files that are no longer the open ones. */
export function replacedFiles(fault: string): string {
  return `The database files were changed under the running daemon (${fault}): nothing is stored any more, because a restart would not find it. Stop the daemon, put the right files in place, and start it again`;
}

/**
 * Returns a check whether open files are still those that a restart would find. It reports what happened to them and costs two
 * system calls: cheap enough to run before each acknowledgement.
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

/** Returns undefined when the identity cannot be determined. */
function identityOf(file: string): string | undefined {
  try {
    const stat = statSync(file, { throwIfNoEntry: false });
    return stat === undefined ? missing : `${stat.dev}:${stat.ino}`;
  } catch {
    return undefined;
  }
}
