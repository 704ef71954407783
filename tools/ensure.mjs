// Makes a fresh clone ready and says what it does: dependencies, a new enough Node, the bundle. Runs before `npm start`
// and `npm test`, where nothing is installed yet and the machine's own Node may be old: plain JavaScript, no packages.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, isBuilt, sourceStamp } from './build.mjs';

const requiredNode = 26;
const exitNode = 79;
const exitFailed = 70;
const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const modules = join(root, 'node_modules');
const lockFile = join(root, 'package-lock.json');
const stampFile = join(modules, '.installed-lock');
const localNode = join(modules, '.bin', process.platform === 'win32' ? 'node.cmd' : 'node');

const say = (text) => process.stderr.write(`gatehouse: ${text}\n`);

class Failure extends Error {
  constructor(text, code = exitFailed) {
    super(text);
    this.code = code;
  }
}

function lockStamp() {
  return createHash('sha256').update(readFileSync(lockFile)).digest('hex');
}

/** Content decides, not time: a checkout touches files without changing them. A manual install counts when it is newer. */
function isInstalled(stamp) {
  if (existsSync(stampFile)) return readFileSync(stampFile, 'utf8') === stamp;
  const own = join(modules, '.package-lock.json');
  if (!existsSync(own) || statSync(own).mtimeMs < statSync(lockFile).mtimeMs) return false;
  writeFileSync(stampFile, stamp);
  return true;
}

function install(stamp) {
  say('installing the dependencies named in package-lock.json (npm install)');
  const started = Date.now();
  // Not `npm ci`: it refuses a lock file that lacks optional packages for other platforms, which not every registry has.
  // The packages of the lock file are installed in that version and checked against their digests nevertheless, and the file stays
  // as it is. No package needs its install script; none is run.
  const args = ['install', '--no-save', '--ignore-scripts', '--include=dev', '--include=optional', '--no-audit', '--no-fund', '--loglevel=error'];
  const npm = process.env.npm_execpath;
  const options = { cwd: root, stdio: ['ignore', 2, 2] };
  const result =
    npm !== undefined && npm.endsWith('.js')
      ? spawnSync(process.execPath, [npm, ...args], options)
      : spawnSync('npm', args, { ...options, shell: process.platform === 'win32' });
  if (result.error !== undefined) throw new Failure(`npm cannot be run: ${result.error.message}`);
  if (result.status !== 0) throw new Failure('the dependencies could not be installed; the lines above say why (is the package registry reachable?)');
  writeFileSync(stampFile, stamp);
  say(`dependencies installed in ${seconds(started)}`);
}

/** npm puts node_modules/.bin before everything else, so the Node in it is the one of the scripts. */
function checkNode() {
  if (major(process.versions.node) >= requiredNode) return;
  if (existsSync(localNode)) {
    const result = spawnSync(localNode, ['--version'], { encoding: 'utf8', shell: process.platform === 'win32' });
    if (result.status === 0 && major(result.stdout.trim().slice(1)) >= requiredNode) return;
    // It blocks every later script if this machine cannot run it.
    rmSync(localNode, { force: true });
  }
  throw new Failure(
    `Node ${requiredNode} or newer is needed. This is ${process.version}, and there is no ready-made one for ${process.platform} on ${process.arch} among the packages: install Node ${requiredNode} (nodejs.org) and start again.`,
    exitNode,
  );
}

/** The build of the dashboard needs a newer Node than this script. */
async function buildBundle(sources) {
  if (major(process.versions.node) >= requiredNode) return void (await build(sources));
  const options = { stdio: ['ignore', 'ignore', 'inherit'], shell: process.platform === 'win32' };
  if (spawnSync(localNode, [join(root, 'tools', 'build.mjs')], options).status !== 0)
    throw new Failure('the bundle could not be built; the lines above say why');
}

function major(version) {
  return Number.parseInt(version, 10);
}

function seconds(since) {
  return `${((Date.now() - since) / 1000).toFixed(1)} s`;
}

/** Keeps two concurrent starts from installing over each other: only one of them can create a folder. */
async function alone(run) {
  const guard = join(root, '.build', 'ensure-lock');
  const holderFile = join(guard, 'pid');
  mkdirSync(dirname(guard), { recursive: true });
  for (let waited = 0; ; waited++) {
    try {
      mkdirSync(guard);
      break;
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
      if (isStale(guard, holderFile)) {
        rmSync(guard, { recursive: true, force: true });
        continue;
      }
      if (waited === 0) say('another start is preparing this folder; waiting for it');
      await new Promise((done) => setTimeout(done, 200));
    }
  }
  try {
    writeFileSync(holderFile, String(process.pid));
    await run();
  } finally {
    rmSync(guard, { recursive: true, force: true });
  }
}

function isStale(guard, holderFile) {
  try {
    process.kill(Number(readFileSync(holderFile, 'utf8')), 0);
    return false;
  } catch (error) {
    if (error.code === 'EPERM') return false;
    if (error.code === 'ESRCH') return true;
    // Created a moment ago and not signed yet, or left by a process that died in between.
    try {
      return Date.now() - statSync(guard).mtimeMs > 5000;
    } catch {
      return false;
    }
  }
}

async function main() {
  if (!isInstalled(lockStamp()) || !isBuilt(sourceStamp())) {
    await alone(async () => {
      const lock = lockStamp();
      if (!isInstalled(lock)) install(lock);
      checkNode();
      const sources = sourceStamp();
      if (isBuilt(sources)) return;
      say('building the bundle (dist/)');
      const started = Date.now();
      await buildBundle(sources);
      say(`bundle built in ${seconds(started)}`);
    });
  }
  checkNode();
}

try {
  await main();
} catch (error) {
  say(error instanceof Error ? error.message : String(error));
  // The other bundles of a failed build would be made first.
  process.exit(error instanceof Failure ? error.code : exitFailed);
}
