// Bundles the daemon, its storage threads, the command and the dashboard into dist/. Plain JavaScript: tools/ensure.mjs, which an older
// Node may run, imports it.
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { buildDashboard } from './build-dashboard.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const dist = join(root, 'dist');
const stampFile = join(dist, '.sources');
/** Modules that run in separate threads and processes, by the name under which their code looks for them. */
export const threads = {
  'storage-worker': 'packages/server/src/storage-worker.ts',
  'postgres-worker': 'packages/server/src/postgres-worker.ts',
  'page-worker': 'packages/server/src/features/environment/web/pages/page-worker.ts',
  'delivery-worker': 'packages/server/src/features/unattended/webhooks/intake/delivery-worker.ts',
  'search-worker': 'packages/server/src/features/environment/workspace/search/search-worker.ts',
  'count-worker': 'packages/server/src/features/environment/workspace/quota/count-worker.ts',
  'tree-worker': 'packages/server/src/kernel/tree-worker.ts',
  'lease-watchdog-process': 'packages/server/src/kernel/lifecycle/lease-watchdog-process.ts',
  'wake-gate-worker': 'packages/server/src/features/unattended/cron/occurrences/wake-gate/wake-gate-worker.ts',
};
/** Files of packages that a thread reads from its own folder. */
export const attachments = { 'quickjs.wasm': 'quickjs-wasi/quickjs.wasm' };
/** Names of the files of the build in dist/. */
const partsFile = join(dist, '.parts');
/** How long files of a replaced build are kept, because a running daemon may still load them. */
const keepOldPartsMs = 7 * 24 * 3600 * 1000;

/**
 * Modules of Node are fetched without their ES module façade: making that reads every property, and reading
 * `WebSocket` of node:http loads a whole HTTP client that nothing here uses, for a quarter of the start.
 */
export const plainBuiltins = {
  name: 'plain-builtins',
  setup(build) {
    build.onResolve({ filter: /^(?:node:)?[a-z]/ }, ({ path, kind }) => {
      if (!isBuiltin(path)) return undefined;
      const name = path.startsWith('node:') ? path : `node:${path}`;
      if (kind !== 'import-statement') return { path: name, external: true };
      // Its last part names the variable of the module, see `bareBuiltins`.
      return { path: `builtin_${name.slice(5).replaceAll('/', '_')}`, namespace: 'builtin', pluginData: name };
    });
    build.onLoad({ filter: /.*/, namespace: 'builtin' }, ({ pluginData }) => ({
      contents: `module.exports = require(${JSON.stringify(pluginData)})`,
      loader: 'js',
    }));
  },
};

/**
 * Takes from the modules of Node the wrapper that makes them look like ES modules: one getter function for the names of all of them, which
 * V8 looks up again at each use, and an object with all names for each file that imports one. Only a default import needs it.
 */
function bareBuiltins(text) {
  const defaults = new Set([...text.matchAll(/\b(\w+)\.default\b/g)].map(([, name]) => name));
  return text.replace(/\b(\w+)=__toESM\((require_builtin_\w+\(\))(?:,1)?\)/g, (wrapped, name, module) =>
    defaults.has(name) ? wrapped : `${name}=${module}`,
  );
}

/**
 * Escapes what esbuild leaves: characters beyond ASCII in regular expressions. One of them makes V8 keep the whole file at two bytes a
 * character and read it more slowly.
 */
function inAscii(text) {
  return text.replaceAll(/(?<!\\)[^\u0000-\u007f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Puts the digest of a thread's module into its name, so that a running daemon never starts a thread of another build. */
function namedThreads(names) {
  return {
    name: 'named-threads',
    setup(build) {
      build.onLoad({ filter: /packages[\\/]server[\\/]src[\\/].*\.ts$/ }, ({ path }) => {
        const text = readFileSync(path, 'utf8');
        const contents = text.replace(/'\.\/([a-z-]+)\.js'/g, (found, name) => (names.has(name) ? `'./${names.get(name)}'` : found));
        return contents === text ? undefined : { contents, loader: 'ts' };
      });
    },
  };
}

/** Native helpers of ws, which a test tool depends on, and of pg: the bundle has no native parts, and both work without them. */
export const noNativeParts = {
  name: 'no-native-parts',
  setup(build) {
    build.onResolve({ filter: /^(?:bufferutil|utf-8-validate|pg-native)$/ }, ({ path }) => ({ path, namespace: 'absent' }));
    build.onLoad({ filter: /.*/, namespace: 'absent' }, ({ path }) => ({
      contents: `throw new Error('${path} is not part of the bundle')`,
      loader: 'js',
    }));
  },
};

/** Sources of the bundle; the same text means the same bundle. */
export function sourceStamp() {
  const hash = createHash('sha256');
  const add = (path) => hash.update(path.slice(root.length)).update('\0').update(readFileSync(path)).update('\0');
  const walk = (folder) => {
    for (const entry of readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) walk(path);
      else if (/\.(tsx?|css|svg)$/.test(entry.name) && !/\.test\.tsx?$/.test(entry.name)) add(path);
    }
  };
  for (const name of ['contract', 'client', 'server', 'cli', 'dashboard']) {
    add(join(root, 'packages', name, 'package.json'));
    walk(join(root, 'packages', name, 'src'));
  }
  for (const path of [
    'package-lock.json',
    'tools/build.mjs',
    'tools/build-dashboard.mjs',
    'packages/dashboard/vite.config.ts',
    'packages/dashboard/index.html',
  ])
    add(join(root, path));
  return hash.digest('hex');
}

/** True when dist/ holds the bundle of `stamp`. */
export function isBuilt(stamp) {
  try {
    return readFileSync(stampFile, 'utf8') === stamp;
  } catch {
    return false;
  }
}

/** Builds into dist/, each file replaced whole, so that two builds at a time and a daemon that starts meanwhile do no harm. */
export async function build(stamp) {
  const { build: bundle } = await import('esbuild');
  const common = {
    absWorkingDir: root,
    outdir: dist,
    bundle: true,
    write: false,
    platform: 'node',
    format: 'esm',
    target: 'node26',
    // Names stay readable in stack traces; there are no source maps to load.
    minifySyntax: true,
    minifyWhitespace: true,
    plugins: [plainBuiltins, noNativeParts],
    legalComments: 'linked',
    logLevel: 'warning',
    // CommonJS packages require modules of Node at run time.
    banner: { js: "import { createRequire as nodeCreateRequire } from 'node:module';const require = nodeCreateRequire(import.meta.url);" },
  };
  const threadNames = new Map();
  // One file for each kind of thread, because a thread that loads many files costs tens of megabytes.
  const threadFiles = Promise.all(
    Object.entries(threads).map(async ([name, source]) => {
      const { outputFiles } = await bundle({ ...common, entryPoints: { [name]: source } });
      const code = outputFiles.find(({ path }) => path.endsWith(`${sep}${name}.js`));
      const named = `${name}-${createHash('sha256').update(code.contents).digest('hex').slice(0, 10)}`;
      threadNames.set(name, `${named}.js`);
      return outputFiles.map((file) => ({
        path: file.path.replace(`${sep}${name}.js`, `${sep}${named}.js`),
        text: file.text,
        contents: file.contents,
      }));
    }),
  );
  const mainBundle = threadFiles.then(() =>
    bundle({
      ...common,
      plugins: [...common.plugins, namedThreads(threadNames)],
      entryPoints: { main: 'packages/server/src/main.ts' },
      splitting: true,
      chunkNames: 'main-[name]-[hash]',
    }),
  );
  const [dashboardBytes, threadParts, ...results] = await Promise.all([
    buildDashboard({ root, outDir: join(dist, 'dashboard') }),
    threadFiles,
    mainBundle,
    bundle({ ...common, entryPoints: { cli: 'packages/cli/src/main.ts' }, splitting: true, chunkNames: 'cli-[name]-[hash]' }),
  ]);
  mkdirSync(dist, { recursive: true });
  const made = new Set();
  // Parts first: an entry must not exist before the files that it loads.
  for (const [name, source] of Object.entries(attachments)) replace(join(dist, name), readFileSync(fileURLToPath(import.meta.resolve(source))));
  const files = [...threadParts.flat(), ...results.flatMap((result) => result.outputFiles)].sort(
    (a, b) => Number(isEntry(a.path)) - Number(isEntry(b.path)),
  );
  for (const file of files) {
    made.add(file.path);
    replace(file.path, file.path.endsWith('.js') ? inAscii(bareBuiltins(file.text)) : file.text);
  }
  const before = readParts();
  for (const name of readdirSync(dist)) {
    const path = join(dist, name);
    if (!made.has(path) && before?.includes(name) !== false && /\.(js|txt)$/.test(name)) utimesSync(path, new Date(), new Date());
    if (!made.has(path) && /\.(js|txt)$/.test(name) && Date.now() - statSync(path).mtimeMs > keepOldPartsMs) rmSync(path, { force: true });
  }
  // The cache was compiled from other files.
  rmSync(join(dist, '.compile-cache'), { recursive: true, force: true });
  replace(partsFile, JSON.stringify([...made].map((path) => path.slice(dist.length + 1))));
  replace(stampFile, stamp);
  return files.reduce((sum, file) => sum + file.contents.length, dashboardBytes);
}

function isEntry(path) {
  return ['main', 'cli'].some((name) => path.endsWith(`${sep}${name}.js`));
}

/** Undefined when the previous build did not record it. */
function readParts() {
  try {
    return JSON.parse(readFileSync(partsFile, 'utf8'));
  } catch {
    return undefined;
  }
}

function replace(path, content) {
  const draft = `${path}.${process.pid}.new`;
  writeFileSync(draft, content);
  renameSync(draft, path);
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const started = performance.now();
  const bytes = await build(sourceStamp());
  console.log(`dist/ built: ${(bytes / 1e6).toFixed(2)} MB in ${Math.round(performance.now() - started)} ms`);
}
