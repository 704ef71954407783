import { createHash } from 'node:crypto';
import { AppError } from '../../../../kernel/app-error.ts';
import { type FolderPlace, readTree, type TreeEntry } from '../../../../kernel/safe-folder.ts';
import { readFileInside } from '../../../../kernel/safe-path.ts';
import type { Bundle, BundleFile, OddMember } from './bundle.ts';
import type { VetLimits } from '../vetting/vet.ts';

/** Folders below a skill; deeper nesting is refused in any case. */
const maxDepth = 12;

/** Summarizes the folder of a skill by names and times alone: equal texts, equal files. Undefined when there is no such folder. */
export async function stampOf(
  place: FolderPlace,
  limits: VetLimits,
): Promise<{ readonly stamp: string; readonly entries: readonly TreeEntry[]; readonly more: boolean } | undefined> {
  try {
    const tree = await readTree(place, { maxEntries: limits.maxFiles * 4, maxDepth });
    const lines = tree.entries.map(({ path, kind, stamp }) => `${path}\0${kind}\0${stamp}`).toSorted();
    return { ...tree, stamp: `${tree.more}\n${lines.join('\n')}` };
  } catch (error) {
    if (error instanceof AppError && error.code === 'not_found') return undefined;
    throw error;
  }
}

/** Reads a skill from disk, within the limits; entries that are not plain files are reported. */
export async function readBundle(place: FolderPlace, entries: readonly TreeEntry[], more: boolean, limits: VetLimits): Promise<Bundle> {
  const files: BundleFile[] = [];
  const odd: OddMember[] = more ? [{ path: '', what: 'too_many' }] : [];
  let total = 0;
  for (const { path, kind, size, executable } of entries) {
    total += size;
    if (kind !== 'file') odd.push({ path, what: kind });
    else if (size > limits.maxFileBytes) odd.push({ path, what: 'too_large' });
    else if (total > limits.maxTotalBytes) {
      odd.push({ path, what: 'too_much' });
      break;
    } else {
      try {
        const bytes = await readFileInside(place.base, [...place.within, path].join('/'), { maxBytes: limits.maxFileBytes });
        files.push({ path, bytes, executable });
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        odd.push({ path, what: error.code === 'payload_too_large' ? 'too_large' : 'special' });
      }
    }
  }
  return { files, odd };
}

export const fileDigest = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
