import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Egress } from '../../../../kernel/egress.ts';
import type { Bundle, BundleFile, OddMember } from '../bundles/bundle.ts';
import type { SkillsConfig } from '../config.ts';
import { parseTreeUrl, type TreeUrl } from './tree-url.ts';
import type { VetLimits } from '../vetting/vet.ts';

/** Hosts of repository archives, and those they may redirect to. */
const archiveOrigin = 'https://codeload.github.com';
const knownHosts: ReadonlySet<string> = new Set(['codeload.github.com', 'github.com']);
/** Path parts that a branch name may have; each candidate is requested, shortest first. */
const maxBranchNames = 6;
const maxEntries = 20_000;
/** Small archives may compress well. */
const bombFloorBytes = 1024 * 1024;
const maxRatio = 100;

export interface ArchiveDeps {
  readonly clock: Clock;
  readonly egress: Pick<Egress, 'request'>;
  readonly limits: () => VetLimits;
  readonly imports: () => SkillsConfig['imports'];
}

/**
 * Fetches the files of a folder of a public repository, from the archive of its branch. Fails with `invalid_params` (address),
 * `not_found`, `payload_too_large` (archive, or its unpacked size), `denied` (redirected elsewhere), `timeout`, `unavailable`.
 */
export async function fetchFolder(deps: ArchiveDeps, url: string, signal: AbortSignal): Promise<Bundle> {
  const tree = parseTreeUrl(url);
  const { timeoutMs: wholeMs } = deps.imports();
  const untilMs = deps.clock.monotonic() + wholeMs;
  const last = Math.min(tree.names.length - 1, maxBranchNames);
  for (let count = 1; count <= last; count += 1) {
    const timeoutMs = untilMs - deps.clock.monotonic();
    if (timeoutMs <= 0) throw new AppError('timeout', `The import took longer than ${wholeMs} ms`, { param: 'url' });
    const archive = await fetchArchive(deps, tree, tree.names.slice(0, count), timeoutMs, signal);
    const bundle = archive === undefined ? undefined : await readArchive(deps, archive, tree.names.slice(count));
    if (bundle !== undefined) return bundle;
  }
  throw new AppError('not_found', 'No files found at this address: is it public, and are branch and path correct?', { param: 'url' });
}

async function fetchArchive(
  { egress, imports }: Pick<ArchiveDeps, 'egress' | 'imports'>,
  { owner, repo }: TreeUrl,
  branch: readonly string[],
  timeoutMs: number,
  signal: AbortSignal,
): Promise<Buffer | undefined> {
  const { maxArchiveBytes } = imports();
  const tooLarge = () => new AppError('payload_too_large', `The archive of the repository is larger than ${maxArchiveBytes} bytes`, { param: 'url' });
  const { status, body, truncated } = await egress.request({
    url: `${archiveOrigin}/${owner}/${repo}/tar.gz/${branch.map(encodeURIComponent).join('/')}`,
    maxBytes: maxArchiveBytes,
    timeoutMs,
    signal,
    follow(next) {
      if (next.protocol !== 'https:' || !knownHosts.has(next.host))
        throw new AppError('denied', 'The address leads to another host', { param: 'url' });
    },
    accept({ status: code, headers }) {
      if (code === 200 && Number(headers['content-length'] ?? 0) > maxArchiveBytes) throw tooLarge();
    },
  });
  if (status === 404) return undefined;
  if (status !== 200) throw new AppError('unavailable', `GitHub answered with ${status}`, { param: 'url' });
  if (truncated) throw tooLarge();
  return body;
}

/** Returns the files of an archive below a folder; undefined when there are none. Special files are reported, never followed. */
export async function readArchive(
  deps: Pick<ArchiveDeps, 'limits' | 'imports'>,
  archive: Buffer,
  folder: readonly string[],
): Promise<Bundle | undefined> {
  const [limits, imports] = [deps.limits(), deps.imports()];
  // Rare: only imports need it.
  const { createTarDecoder } = await import('modern-tar');
  const decoder = createTarDecoder({ strict: true });
  const controller = new AbortController();
  const fill = unpack(archive, imports.maxUnpackedBytes, decoder.writable, controller.signal);
  fill.catch(() => {});
  const prefix = `${folder.join('/')}/`;
  const files: BundleFile[] = [];
  const odd: OddMember[] = [];
  let total = 0;
  let entries = 0;
  try {
    for await (const { header, body } of decoder.readable) {
      entries += 1;
      if (entries > maxEntries) throw new AppError('payload_too_large', `The archive has more than ${maxEntries} entries`, { param: 'url' });
      const path = pathIn(header.name, prefix);
      const type = header.type ?? 'file';
      if (path === undefined || type === 'directory' || type === 'pax-global-header' || type === 'pax-header') {
        await body.cancel();
        continue;
      }
      if (type !== 'file') odd.push({ path, what: type === 'link' || type === 'symlink' ? 'link' : 'special' });
      else if (header.size > limits.maxFileBytes) odd.push({ path, what: 'too_large' });
      else if (files.length >= limits.maxFiles * 4) odd.push({ path, what: 'too_many' });
      else if (total + header.size > limits.maxTotalBytes) odd.push({ path, what: 'too_much' });
      else {
        const bytes = Buffer.from(await new Response(body).arrayBuffer());
        total += bytes.length;
        files.push({ path, bytes, executable: ((header.mode ?? 0) & 0o111) !== 0 });
        continue;
      }
      await body.cancel();
      if (odd.length >= 100) break;
    }
    if (odd.length < 100) await fill;
  } catch (error) {
    const cause: unknown = await fill.then(
      () => error,
      (reason: unknown) => (reason instanceof AppError ? reason : error),
    );
    throw cause instanceof AppError
      ? cause
      : new AppError('precondition_failed', 'The archive of the repository is damaged', { param: 'url', cause });
  } finally {
    controller.abort();
  }
  return files.length + odd.length === 0 ? undefined : { files, odd };
}

async function unpack(archive: Buffer, maxBytes: number, into: WritableStream<Uint8Array>, signal: AbortSignal): Promise<void> {
  let bytes = 0;
  const bounded = async function* (source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of source) {
      bytes += chunk.length;
      if (bytes > maxBytes || (bytes > bombFloorBytes && bytes > archive.length * maxRatio))
        throw new AppError(
          'payload_too_large',
          `The archive of the repository unpacks to more than ${maxBytes} bytes, or ${maxRatio} times its size`,
          { param: 'url' },
        );
      yield chunk;
    }
  };
  await pipeline(Readable.from([archive]), createGunzip(), bounded, into, { signal });
}

/**
 * Returns the path of an entry below the requested folder, without the archive's own top folder; undefined for entries
 * elsewhere. A name with ".." or an absolute one stays as it is, so that the structure rules refuse it.
 */
function pathIn(name: string, prefix: string): string | undefined {
  if (name.startsWith('/') || name.split('/').includes('..')) return name;
  const inside = name.slice(name.indexOf('/') + 1);
  return inside.startsWith(prefix) && inside.length > prefix.length ? inside.slice(prefix.length) : undefined;
}
