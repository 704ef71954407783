import type { Result } from '@gatehouse/contract';
import { plainText } from '../render/plain.ts';
import { renderBytes, renderColumns, renderTable, renderTime } from '../render/table.ts';

export function statusText({ dir, exists, hasGitRepo, isBootstrapped, files }: Result<'workspace.status'>): string {
  const facts = renderColumns([
    ['folder', exists ? dir : `${dir} (does not exist yet)`],
    ['repository', hasGitRepo ? 'yes' : 'no'],
    ['set up', isBootstrapped ? 'yes' : 'not yet'],
  ]);
  const rows = files.map(({ name, present, sizeBytes, untouched }) => [
    name,
    present ? renderBytes(sizeBytes ?? 0) : undefined,
    present ? (untouched === true ? 'template' : 'own') : 'missing',
  ]);
  return `${facts}\n\n${renderTable(['File', 'Size', 'State'], rows)}`;
}

export function listText({ entries, truncated }: Result<'workspace.listDir'>): string {
  if (entries.length === 0) return 'The folder is empty.';
  const table = renderTable(
    ['Name', 'Size', 'Changed'],
    entries.map(({ name, type, sizeBytes, modifiedAt }) => [
      type === 'directory' ? `${name}/` : name,
      sizeBytes === undefined ? undefined : renderBytes(sizeBytes),
      renderTime(modifiedAt),
    ]),
  );
  return truncated ? `${table}\nNot all entries are shown.` : table;
}

export function changesText({ branch, clean, entries, truncated }: Result<'workspace.git.status'>): string {
  if (clean) return `On ${plainText(branch)}: no uncommitted changes.`;
  const rows = entries.map(({ status, staged, path }) => [status, staged ? 'staged' : undefined, path]);
  return [`On ${plainText(branch)}:`, renderColumns(rows), ...(truncated ? ['Not all entries are shown.'] : [])].join('\n');
}

export function logText({ commits }: Result<'workspace.git.log'>): string {
  if (commits.length === 0) return 'No commits.';
  return renderColumns(commits.map(({ sha, author, date, message }) => [sha.slice(0, 10), date, author, message.split('\n')[0]]));
}
