// Builds the dashboard into dist/dashboard: plain JavaScript, as tools/build.mjs, which calls it.
import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';

/** Below this size a packed form saves less than its header costs. */
const leastPackedBytes = 1024;

/**
 * Bundles the dashboard and packs each text once, so that nothing is packed per request. Pages come last: they must not
 * exist before the files that they load. Parts of earlier builds are removed: a daemon reads a whole build at its first request.
 * Returns the bytes written.
 */
export async function buildDashboard({ root, outDir }) {
  const { build } = await import('vite');
  const { output } = await build({
    configFile: join(root, 'packages/dashboard/vite.config.ts'),
    // Otherwise the configuration is bundled first, into a file below node_modules.
    configLoader: 'native',
    build: { write: false },
  });
  const first = firstLoad(output);
  const files = (
    await Promise.all(output.map((one) => packed(one.fileName, Buffer.from(one.type === 'chunk' ? one.code : one.source), first.has(one.fileName))))
  ).flat();
  mkdirSync(join(outDir, 'assets'), { recursive: true });
  for (const { name, content } of files.sort((a, b) => Number(isPage(a.name)) - Number(isPage(b.name)))) {
    const path = join(outDir, name);
    mkdirSync(dirname(path), { recursive: true });
    const draft = `${path}.${process.pid}.new`;
    writeFileSync(draft, content);
    renameSync(draft, path);
  }
  const made = new Set(files.map(({ name }) => name));
  // A page that is too small to be packed now must not be served as it was packed before.
  for (const name of readdirSync(outDir)) if (isPage(name) && !made.has(name)) rmSync(join(outDir, name), { force: true });
  for (const name of readdirSync(join(outDir, 'assets'))) if (!made.has(`assets/${name}`)) rmSync(join(outDir, 'assets', name), { force: true });
  return files.reduce((sum, { content }) => sum + content.length, 0);
}

function isPage(name) {
  return /\.html(\.br|\.gz)?$/.test(name);
}

/** Returns the names of the files that every visit loads: the page, its styles, the two modules that start it, and what they import. */
function firstLoad(output) {
  const chunks = new Map(output.flatMap((one) => (one.type === 'chunk' ? [[one.fileName, one]] : [])));
  const isFirst = ({ fileName, name }) => name === 'entry' || name === 'app' || /\.(css|html)$/.test(fileName);
  const names = new Set(output.filter(isFirst).map(({ fileName }) => fileName));
  for (const name of names) for (const imported of chunks.get(name)?.imports ?? []) names.add(imported);
  return names;
}

/** The best quality of brotli saves a tenth, and takes seven times as long: only what every visit loads is worth it. */
async function packed(name, content, isFirst) {
  const plain = { name, content };
  if (content.length < leastPackedBytes || !/\.(html|js|css|svg|json|txt)$/.test(name)) return [plain];
  const best = isFirst ? constants.BROTLI_MAX_QUALITY : 9;
  const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: best, [constants.BROTLI_PARAM_SIZE_HINT]: content.length } };
  const [br, gz] = await Promise.all([promisify(brotliCompress)(content, quality), promisify(gzip)(content, { level: 9 })]);
  return [plain, { name: `${name}.br`, content: br }, { name: `${name}.gz`, content: gz }];
}
