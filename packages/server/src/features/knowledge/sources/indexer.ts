import { hash } from 'node:crypto';
import { errorCatalogue } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { Operation } from '../../../kernel/db/operation.ts';
import { newId } from '../../../kernel/ids.ts';
import { readListedFile } from '../../../kernel/safe-path.ts';
import type { DocumentsApi } from '../../environment/documents/api.ts';
import { type KnowledgeSource, knowledgeOwner, placeOf } from './api.ts';
import { toPassages, withHead } from './passages.ts';
import { type FoundFile, scanFolder } from './scan.ts';
import { type CrawledPage, crawlSite, type FetchPage } from './site.ts';
import { type KnownFile, listKnownFiles, type PutKnowledgeFile, removeKnowledgeFiles, touchKnowledgeFile } from './store.ts';

export interface IndexerDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly documents: Pick<DocumentsApi, 'extract' | 'maxFileBytes'>;
  readonly fetchPage: FetchPage;
  readonly homeDir: string;
  readonly putFile: Operation<PutKnowledgeFile, void>;
  /** Called after text was added, so that it is embedded. */
  readonly stored: (owner: string) => void;
}

type OnFolders = (folders: readonly string[]) => Promise<void>;

export interface Indexed {
  readonly changed: number;
  readonly removed: number;
  /** There are more files than the source may have. */
  readonly more: boolean;
}

/** How long a file is not read again of which pages are missing, or which could not be read for a reason that may pass. */
const unreadMs = 15 * 60_000;
/** Stamp and digest of such a file: no file has them. */
const unreadStamp = '';
const unreadFolderStamp = 'folder';
const unreadFolder = 'the folder cannot be read: its permissions forbid it, or its disk fails; what was indexed from it is kept';
/** Unread folders that are noted. */
const maxUnread = 100;
/** Files removed by one write. */
const removedAtOnce = 50;
const identity = { principalId: 'knowledge', tokenId: '', scopes: [] };

/** Brings the index of one source up to date with its folder or site. */
export function createIndexer({ db, clock, documents, fetchPage, homeDir, putFile, stored }: IndexerDeps) {
  async function put(
    agentId: string,
    source: KnowledgeSource,
    file: {
      readonly path: string;
      readonly stamp: string;
      readonly size: number;
      /** Or why there are none. */
      readonly bytes: Uint8Array | string;
      readonly digest: string;
      readonly name: string;
    },
    signal: AbortSignal,
  ): Promise<void> {
    const id = fileIdOf(agentId, source.name, file.path);
    const { passages, problem, isWhole } = await passagesOf(agentId, file, signal);
    const generation = newId('kp');
    await db.write(putFile, {
      file: {
        id,
        agentId,
        source: source.name,
        place: placeOf(source),
        path: file.path,
        stamp: isWhole ? file.stamp : unreadStamp,
        digest: isWhole ? file.digest : unreadStamp,
        sizeBytes: file.size,
        passages: passages.length,
        problem,
        indexedAtMs: clock.now(),
      },
      owner: knowledgeOwner(agentId),
      trusted: source.trusted,
      passages: passages.map((passage, index) => ({
        id: `${generation}.${index}`,
        content: withHead(file.path, passage),
        part: passage.part,
        label: passage.label,
      })),
    });
    if (passages.length > 0) stored(knowledgeOwner(agentId));
  }

  async function passagesOf(agentId: string, { bytes, name }: { readonly bytes: Uint8Array | string; readonly name: string }, signal: AbortSignal) {
    if (typeof bytes === 'string') return { passages: [], problem: bytes, isWhole: true };
    try {
      const document = await documents.extract({ bytes, fileName: name }, { identity, signal, agentId });
      const passages = toPassages(document);
      const problem = document.unread ?? (passages.length === 0 ? (document.notes[0] ?? 'has no text') : null);
      return { passages, problem: problem?.slice(0, 300) ?? null, isWhole: document.unread === undefined };
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof AppError) || error.code === 'internal' || error.code === 'cancelled') throw error;
      // What took too long would do so again, at the expense of all other files.
      const isWhole = !errorCatalogue[error.code].retryable || error.code === 'timeout';
      return { passages: [], problem: error.message.slice(0, 300), isWhole };
    }
  }

  const isTooSoon = ({ stamp, indexedAtMs }: KnownFile): boolean => stamp === unreadStamp && Math.abs(clock.now() - indexedAtMs) < unreadMs;

  async function remove(files: readonly KnownFile[], signal: AbortSignal): Promise<void> {
    for (let at = 0; at < files.length; at += removedAtOnce) {
      signal.throwIfAborted();
      await db.write(removeKnowledgeFiles, { fileIds: files.slice(at, at + removedAtOnce).map(({ id }) => id) });
    }
  }

  /** Returns the known files of a source by path; those of another place that had its name are removed first. */
  async function known(agentId: string, source: KnowledgeSource, signal: AbortSignal): Promise<Map<string, KnownFile>> {
    const all = await db.read(listKnownFiles, { agentId, source: source.name });
    await remove(
      all.filter(({ place }) => place !== placeOf(source)),
      signal,
    );
    return new Map(all.filter(({ place }) => place === placeOf(source)).map((file) => [file.path, file]));
  }

  async function indexFolder(
    agentId: string,
    source: KnowledgeSource,
    folder: string,
    { signal, onFolders }: { readonly signal: AbortSignal; readonly onFolders: OnFolders },
  ): Promise<Indexed> {
    const before = await known(agentId, source, signal);
    const { files, folders, unread, more, isEmpty } = await scanFolder(folder, { maxFiles: source.maxFiles, homeDir });
    await onFolders(folders);
    if (isEmpty && before.size > 0)
      throw new AppError('not_found', 'The folder is empty; what was indexed is kept, as a disk may not be mounted: remove the source to remove it');
    let changed = 0;
    for (const file of files) {
      signal.throwIfAborted();
      const old = before.get(file.path);
      before.delete(file.path);
      if (old !== undefined && (old.stamp === file.stamp || isTooSoon(old))) continue;
      if (await indexFile(agentId, source, folder, file, old, signal)) changed += 1;
    }
    for (const path of unread.slice(0, maxUnread)) {
      if (before.get(path)?.stamp !== unreadFolderStamp)
        await put(agentId, source, { path, stamp: unreadFolderStamp, name: path, digest: '', size: 0, bytes: unreadFolder }, signal);
      before.delete(path);
    }
    const gone = [...before.values()].filter(({ path }) => !unread.some((one) => path.startsWith(`${one}/`)));
    await remove(gone, signal);
    return { changed, removed: gone.length, more };
  }

  async function indexFile(
    agentId: string,
    source: KnowledgeSource,
    folder: string,
    { path, stamp, size }: FoundFile,
    old: KnownFile | undefined,
    signal: AbortSignal,
  ): Promise<boolean> {
    const name = path.slice(path.lastIndexOf('/') + 1);
    // A file that is too large is noted without being read.
    const { maxFileBytes } = documents;
    const bytes = size > maxFileBytes ? `larger than ${maxFileBytes} bytes (documents.maxFileBytes)` : await readOrSayWhy(folder, path, maxFileBytes);
    if (typeof bytes === 'string') {
      await put(agentId, source, { path, stamp, name, digest: '', size, bytes }, signal);
      return true;
    }
    const digest = hash('sha256', bytes);
    if (old?.digest === digest) {
      await db.write(touchKnowledgeFile, { fileId: old.id, stamp });
      return false;
    }
    await put(agentId, source, { path, stamp, name, bytes, digest, size }, signal);
    return true;
  }

  async function indexSite(agentId: string, source: KnowledgeSource, site: string, signal: AbortSignal): Promise<Indexed> {
    const before = await known(agentId, source, signal);
    let changed = 0;
    const { more, unread } = await crawlSite(site, { fetchPage, maxPages: source.maxFiles, signal }, async ({ url, text }: CrawledPage) => {
      const bytes = Buffer.from(text);
      const digest = hash('sha256', bytes);
      const old = before.get(url);
      before.delete(url);
      if (old?.digest === digest) return;
      await put(agentId, source, { path: url, stamp: digest, name: 'page.md', bytes, digest, size: bytes.byteLength }, signal);
      changed += 1;
    });
    // A page that could not be read keeps its text, and with it all pages that it may still lead to.
    const gone = unread.some((url) => before.has(url)) ? [] : [...before.values()];
    await remove(gone, signal);
    return { changed, removed: gone.length, more };
  }

  return {
    /** `onFolders` is called with the folders below that of the source, before their files are read. */
    index(agentId: string, source: KnowledgeSource, signal: AbortSignal, onFolders: OnFolders): Promise<Indexed> {
      if (source.folder !== undefined) return indexFolder(agentId, source, source.folder, { signal, onFolders });
      return indexSite(agentId, source, source.site ?? '', signal);
    },
    /** Removes everything of a source. */
    async drop(agentId: string, source: string, signal: AbortSignal): Promise<void> {
      await remove(await db.read(listKnownFiles, { agentId, source }), signal);
    },
  };
}

/** The same file keeps its id, so that citations stay valid when it changes. */
function fileIdOf(agentId: string, source: string, path: string): string {
  return `kf_${hash('sha256', JSON.stringify([agentId, source, path])).slice(0, 32)}`;
}

/** Returns the reason when a file cannot be read; one that is gone, or became a link, since the folder was scanned is removed by the next scan. */
async function readOrSayWhy(folder: string, path: string, maxBytes: number): Promise<Buffer | string> {
  try {
    return await readListedFile(folder, path, { maxBytes });
  } catch (error) {
    if (!(error instanceof AppError) || (error.code !== 'not_found' && error.code !== 'payload_too_large')) throw error;
    return error.code === 'not_found' ? 'cannot be read: its permissions forbid it, or its name has invisible characters' : error.message;
  }
}
