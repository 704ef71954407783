export interface ChangedPath {
  readonly path: string;
  readonly status: 'untracked' | 'deleted' | 'added' | 'renamed' | 'copied' | 'modified';
  readonly staged: boolean;
}

export interface GitStatus {
  readonly branch: string;
  readonly entries: readonly ChangedPath[];
}

/** Parses the output of `git status --porcelain=v2 -z --branch`; drops the last record of truncated output. */
export function parseStatus(output: Buffer, cut: boolean): GitStatus {
  const records = output.toString().split('\0');
  // Nothing, or half a record, follows the last NUL.
  records.pop();
  if (cut) records.pop();
  let branch = '';
  const entries: ChangedPath[] = [];
  for (let at = 0; at < records.length; at += 1) {
    const record = records[at] ?? '';
    const kind = record[0];
    if (record.startsWith('# branch.head ')) branch = record.slice('# branch.head '.length);
    else if (kind === '?') entries.push({ path: record.slice(2), status: 'untracked', staged: false });
    else if (kind === '1') entries.push(changed(record, 8));
    else if (kind === 'u') entries.push(changed(record, 10));
    else if (kind === '2') {
      entries.push(changed(record, 9));
      // The former name is a separate record.
      at += 1;
    }
  }
  return { branch: branch === '(detached)' || branch === '' ? 'HEAD (detached)' : branch, entries };
}

const statusOf: Readonly<Record<string, ChangedPath['status']>> = { D: 'deleted', A: 'added', R: 'renamed', C: 'copied' };

/** Returns the path, which follows the given number of fields. */
function changed(record: string, fields: number): ChangedPath {
  let at = 0;
  for (let field = 0; field < fields; field += 1) at = record.indexOf(' ', at) + 1;
  const [inIndex = '.', inFolder = '.'] = record.slice(2, 4);
  return { path: record.slice(at), status: statusOf[inFolder === '.' ? inIndex : inFolder] ?? 'modified', staged: inIndex !== '.' };
}
