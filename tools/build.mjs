// Bundles the daemon, its storage threads, the command and the dashboard into dist/. Plain JavaScript: tools/ensure.mjs, which an older
// Node may run, imports it.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { createRequire, isBuiltin } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { buildDashboard } from './build-dashboard.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const dist = join(root, 'dist');
const stampFile = join(dist, '.sources');
/** Modules that run in separate threads and processes, by the name under which their code looks for them. */
const threads = {
  'postgres-worker': 'packages/server/src/postgres-worker.ts',
  'page-worker': 'packages/server/src/features/environment/web/pages/page-worker.ts',
  'document-process': 'packages/server/src/features/environment/documents/formats/document-process.ts',
  'picture-process': 'packages/server/src/features/environment/multimodal/pictures/picture-process.ts',
  'delivery-worker': 'packages/server/src/features/unattended/webhooks/intake/delivery-worker.ts',
  'check-worker': 'packages/server/src/features/operations/evaluation/checks/check-worker.ts',
  'search-worker': 'packages/server/src/features/environment/workspace/search/search-worker.ts',
  'screen-worker': 'packages/server/src/features/environment/shell/terminal/screen-worker.ts',
  'browser-worker': 'packages/server/src/features/environment/browser/engine/browser-worker.ts',
  'count-worker': 'packages/server/src/features/environment/workspace/quota/count-worker.ts',
  'tree-worker': 'packages/server/src/kernel/tree-worker.ts',
  'keyring-process': 'packages/server/src/kernel/keyring-process.ts',
  'lease-watchdog-process': 'packages/server/src/kernel/lifecycle/lease-watchdog-process.ts',
  'wake-gate-worker': 'packages/server/src/features/unattended/cron/occurrences/wake-gate/wake-gate-worker.ts',
};
/** The thread of every start. Like the daemon it is a program, see `kernel/lifecycle/compiled-file.ts`. */
const storageThread = {
  name: 'storage-worker',
  source: 'packages/server/src/storage-worker.ts',
  runner: 'packages/server/src/kernel/lifecycle/compiled-worker.ts',
};
/** Files of packages that a thread reads from its own folder. */
export const attachments = { 'quickjs.wasm': 'quickjs-wasi/quickjs.wasm', 'vips.wasm': 'wasm-vips/vips.wasm', 'vips-node.mjs': 'wasm-vips' };
/** The schema of the configuration file for editors, made by tools/gen.ts. */
const configSchema = 'docs/reference/config.schema.json';
/** Names of the files of the build in dist/. */
const partsFile = join(dist, '.parts');
/** How long files of a replaced build are kept, because a running daemon may still load them. */
const keepOldPartsMs = 7 * 24 * 3600 * 1000;

/**
 * Modules of Node that packages require when they are loaded, and most daemons never use. They take a tenth of the start, and
 * certificates are read as soon as `node:tls` is there.
 */
const rarelyUsed = new Set(['node:https', 'node:tls', 'node:zlib']);

/** Loads a module of Node when a property of it is read for the first time. */
function loadedOnUse(name) {
  const getters = Object.keys(createRequire(import.meta.url)(name)).map((key) => `get ${key}(){return load().${key}}`);
  return `const load=()=>require(${JSON.stringify(name)});module.exports={${getters.join()}}`;
}

/**
 * Modules of Node are fetched without their ES module façade: making that reads every property, and reading
 * `WebSocket` of node:http loads a whole HTTP client that nothing here uses, for a quarter of the start.
 */
const plainBuiltins = {
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
      contents: rarelyUsed.has(pluginData) ? loadedOnUse(pluginData) : `module.exports = require(${JSON.stringify(pluginData)})`,
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

/** CommonJS packages require modules of Node at run time. */
const requireBanner = "import { createRequire as nodeCreateRequire } from 'node:module';const require = nodeCreateRequire(import.meta.url);";

/** Options of a bundle that `runCompiled` runs, and the function in which it expects the bundle. */
const program = {
  format: 'cjs',
  define: { 'import.meta.url': '__url', 'import.meta.filename': '__filename', 'import.meta.dirname': '__dirname' },
};
const wrapped = (text) =>
  `(function(exports,require,module,__filename,__dirname,__url,__import){${text.replaceAll('import("./main-', '__import("./main-')}\n})`;

/** Puts the digest of a file into the name under which code looks for it, so that a running daemon loads nothing of another build. */
const withNames = (text, names) => text.replace(/'\.\/([a-z-]+)\.js'/g, (found, name) => (names.has(name) ? `'./${names.get(name)}'` : found));

function namedFiles(names) {
  return {
    name: 'named-files',
    setup(build) {
      build.onLoad({ filter: /packages[\\/]server[\\/]src[\\/].*\.ts$/ }, ({ path }) => {
        const text = readFileSync(path, 'utf8');
        const contents = withNames(text, names);
        return contents === text ? undefined : { contents, loader: 'ts' };
      });
    },
  };
}

/** Native helpers of ws, which a test tool depends on, and of pg: the bundle has no native parts, and both work without them. */
const noNativeParts = {
  name: 'no-native-parts',
  setup(build) {
    build.onResolve({ filter: /^(?:bufferutil|utf-8-validate|pg-native)$/ }, ({ path }) => ({ path, namespace: 'absent' }));
    build.onLoad({ filter: /.*/, namespace: 'absent' }, ({ path }) => ({
      contents: `throw new Error('${path} is not part of the bundle')`,
      loader: 'js',
    }));
  },
};

/**
 * Optional packages with native code, which the process that needs them loads from node_modules, one whose own threads load its file again, and
 * one that looks for files next to its own.
 */
const unbundled = ['@napi-rs/keyring', 'wasm-vips', 'playwright-core'];

/** Digest of sources: what is built from the same texts is the same. */
function stampOf(packages, files) {
  const hash = createHash('sha256');
  const add = (path) => hash.update(path.slice(root.length)).update('\0').update(readFileSync(path)).update('\0');
  const walk = (folder) => {
    for (const entry of readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) walk(path);
      else if (/\.(tsx?|css|svg|png|webmanifest|json)$/.test(entry.name) && !/\.test\.tsx?$/.test(entry.name)) add(path);
    }
  };
  for (const name of packages) {
    add(join(root, 'packages', name, 'package.json'));
    walk(join(root, 'packages', name, 'src'));
  }
  for (const path of files) add(join(root, path));
  return hash.digest('hex');
}

const dashboardFiles = [
  'package-lock.json',
  'tools/build-dashboard.mjs',
  'packages/dashboard/vite.config.ts',
  'packages/dashboard/index.html',
  // The dashboard shows them.
  ...['agents', 'channels', 'dashboard', 'delegation', 'schedule'].map((name) => `docs/guide/${name}.md`),
];
const dashboardStamp = () => stampOf(['contract', 'client', 'dashboard'], dashboardFiles);

/** Digest of the sources of the bundle. */
export const sourceStamp = () => stampOf(['contract', 'client', 'server', 'cli', 'dashboard'], [...dashboardFiles, configSchema, 'tools/build.mjs']);

/** True when dist/ holds the bundle of `stamp`. */
export const isBuilt = (stamp) => readIfThere(stampFile) === stamp;

function readIfThere(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

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
  metafile: true,
};
const standalone = { ...common, external: unbundled, banner: { js: requireBanner } };

/**
 * Returns the files of the daemon and its threads by their names, the program last. `change` makes a plugin that replaces sources of the server;
 * what it loads goes through the function that it gets.
 */
export async function bundleDaemon(change) {
  const { build: bundle } = await import('esbuild');
  /** Names of files with their digest, by the name under which code looks for them. */
  const names = new Map();
  const made = new Map();
  const unnamed = [...(change === undefined ? [] : [change((text) => text)]), ...common.plugins];
  const named = () => [...(change === undefined ? [] : [change((text) => withNames(text, names))]), ...common.plugins, namedFiles(names)];

  /** Adds a bundle of one file and its licenses. */
  function add(name, { outputFiles }, finish = (text) => text) {
    for (const { path, text } of outputFiles) {
      const isCode = path.endsWith('.js');
      const content = isCode ? finished(finish(text)) : text;
      if (isCode) names.set(name, `${name}-${createHash('sha256').update(content).digest('hex').slice(0, 10)}.js`);
      made.set(isCode ? names.get(name) : `${name}.js.LEGAL.txt`, content);
    }
  }

  // One file for each kind of thread, because a thread that loads many files costs tens of megabytes.
  async function addThreads() {
    await Promise.all(
      Object.entries(threads).map(async ([name, source]) =>
        add(name, await bundle({ ...standalone, plugins: unnamed, entryPoints: { [name]: source } })),
      ),
    );
    add('storage-program', await bundle({ ...common, ...program, plugins: unnamed, entryPoints: { program: storageThread.source } }), wrapped);
    add(storageThread.name, await bundle({ ...standalone, plugins: named(), entryPoints: { thread: storageThread.runner } }));
  }

  /** Adds the daemon: one file of all that a start loads, and modules that are loaded when they are needed. */
  async function addDaemon() {
    const { outputFiles, metafile } = await bundle({
      ...common,
      plugins: named(),
      entryPoints: { daemon: 'packages/server/src/process/daemon.ts' },
      splitting: true,
      chunkNames: 'main-[name]-[hash]',
    });
    const texts = new Map(outputFiles.map(({ path, text }) => [basename(path), path.endsWith('.js') ? bareBuiltins(text) : text]));
    const chunks = new Map(Object.entries(metafile.outputs).map(([path, chunk]) => [basename(path), chunk]));
    const importsOf = (file) =>
      chunks
        .get(file)
        .imports.filter(({ kind }) => kind === 'import-statement')
        .map(({ path }) => basename(path));
    const loaded = new Set(['daemon.js']);
    for (const file of loaded) for (const part of importsOf(file)) loaded.add(part);
    const shared = new Set(
      [...chunks.keys()]
        .filter((file) => file.endsWith('.js') && !loaded.has(file))
        .flatMap(importsOf)
        .filter((file) => loaded.has(file)),
    );

    const joined = {
      name: 'joined',
      setup(build) {
        build.onResolve({ filter: /^\.\// }, ({ path, kind }) =>
          kind === 'dynamic-import' ? { path, external: true } : { path: basename(path), namespace: 'chunk' },
        );
        build.onLoad({ filter: /.*/, namespace: 'chunk' }, ({ path }) => ({ contents: texts.get(path) }));
      },
    };
    const contents = [`export * from './daemon.js';`, ...[...shared].map((file) => `export * as '${file}' from './${file}';`)].join('\n');
    add('main-program', await bundle({ ...common, ...program, plugins: [joined], stdin: { contents, resolveDir: dist } }), wrapped);
    // Parts that are loaded later find here what the program holds. By name: a file of that name has the same content in each build.
    for (const file of shared) {
      const { exports } = chunks.get(file);
      made.set(file, `const{${exports.join()}}=globalThis[Symbol.for('gatehouse.program')]['${file}'];export{${exports.join()}};`);
    }
    for (const [file, text] of texts) if (!loaded.has(file)) made.set(file, file.endsWith('.js') ? finished(`${requireBanner}${text}`) : text);

    const apart = {
      name: 'apart',
      setup: (build) => build.onResolve({ filter: /\/process\/daemon\.ts$/ }, ({ path }) => ({ path, external: true })),
    };
    const main = await bundle({
      ...standalone,
      plugins: [apart, ...named()],
      entryPoints: { main: 'packages/server/src/main.ts' },
    });
    made.set('main.js', finished(main.outputFiles[0].text));
  }

  await addThreads();
  await addDaemon();
  return made;
}

/** Returns the files of the command by their names. */
async function bundleCommand() {
  const { build: bundle } = await import('esbuild');
  const { outputFiles } = await bundle({
    ...standalone,
    // A package of the command asks for its folder, and reads nothing there.
    banner: { js: `${requireBanner}const __dirname = import.meta.dirname;` },
    entryPoints: { cli: 'packages/cli/src/main.ts' },
    splitting: true,
    chunkNames: 'cli-[name]-[hash]',
  });
  return outputFiles.map(({ path, text }) => [basename(path), path.endsWith('.js') ? finished(text) : text]);
}

/** Builds into dist/, each file replaced whole, so that two builds at a time and a daemon that starts meanwhile do no harm. */
export async function build(stamp) {
  const [dashboardBytes, daemon, command] = await Promise.all([buildChangedDashboard(), bundleDaemon(), bundleCommand()]);
  const made = new Map([...daemon, ...command]);
  mkdirSync(dist, { recursive: true });
  for (const [name, source] of Object.entries(attachments)) replace(join(dist, name), readFileSync(fileURLToPath(import.meta.resolve(source))));
  replace(join(dist, basename(configSchema)), readFileSync(join(root, configSchema)));
  // Parts first: an entry must not exist before the files that it loads.
  const order = [...made.keys()].sort((a, b) => Number(isEntry(a)) - Number(isEntry(b)));
  for (const name of order) replace(join(dist, name), made.get(name));
  const before = readParts();
  for (const name of readdirSync(dist)) {
    const path = join(dist, name);
    if (!made.has(name) && before?.includes(name) !== false && /\.(js|txt)$/.test(name)) utimesSync(path, new Date(), new Date());
    if (!made.has(name) && /\.(js|txt)$/.test(name) && Date.now() - statSync(path).mtimeMs > keepOldPartsMs) rmSync(path, { force: true });
  }
  // The cache was compiled from other files.
  rmSync(join(dist, '.compile-cache'), { recursive: true, force: true });
  replace(partsFile, JSON.stringify([...made.keys()]));
  replace(stampFile, stamp);
  return order.reduce((sum, name) => sum + made.get(name).length, dashboardBytes);
}

/** Builds the dashboard unless dist/ has that of these sources; returns the bytes written. */
async function buildChangedDashboard() {
  const outDir = join(dist, 'dashboard');
  const stamp = dashboardStamp();
  const file = join(dist, '.dashboard-sources');
  if (readIfThere(file) === stamp && existsSync(join(outDir, 'index.html'))) return 0;
  const bytes = await buildDashboard({ root, outDir });
  replace(file, stamp);
  return bytes;
}

function isEntry(name) {
  return name === 'main.js' || name === 'cli.js';
}

function finished(text) {
  return inAscii(bareBuiltins(text));
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
