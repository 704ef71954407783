import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { freePort } from '@gatehouse/testkit/free-port';
import { type Daemon, operatorToken, root, startDaemon } from './lib/daemon.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { proofConfig } from './lib/provider.ts';

/** Proves that `gatehouse doctor` never fails on a healthy installation, however many run at once, whether its daemon runs or not. */
export interface DoctorReport {
  readonly runs: number;
  /** Runs that ended without a clean report, each in one line. */
  readonly wrong: readonly string[];
}

export interface DoctorOptions {
  readonly runs: number;
  readonly atOnce: number;
  /** Files of proving/broken; the checks then run from the sources. */
  readonly broken?: readonly string[];
  readonly progress?: (line: string) => void;
}

/** Half of the runs check a home whose daemon runs, the other half the same home after a stop. */
export async function proveDoctorRuns({ runs, atOnce, broken, progress }: DoctorOptions): Promise<DoctorReport> {
  const home = await makeHome();
  const port = await freePort();
  const wrong: string[] = [];
  const check = (): Promise<string | undefined> => (broken === undefined ? runCommand(home) : runMode(home, broken));
  const round = async (count: number, state: string) => {
    let left = count;
    await Promise.all(
      Array.from({ length: atOnce }, async () => {
        while (left-- > 0) {
          const fault = await check();
          if (fault !== undefined) wrong.push(`${state}: ${fault}`);
          if (left > 0 && left % 100 === 0) progress?.(`doctor: ${left} to go with ${state}, ${wrong.length} wrong`);
        }
      }),
    );
  };
  let daemon: Daemon | undefined;
  try {
    await writeConfig(home, proofConfig('http://127.0.0.1:9', { gateway: { port } }));
    if (broken === undefined) {
      daemon = await startDaemon({ home, port });
      await round(Math.ceil(runs / 2), 'a daemon');
      await daemon.stop();
      await round(Math.floor(runs / 2), 'no daemon');
    } else await round(runs, 'no daemon');
  } finally {
    await daemon?.kill();
    await removeHome(home);
  }
  return { runs, wrong };
}

/** The command as it ships. */
function runCommand(home: string): Promise<string | undefined> {
  return run(['dist/cli.js', 'doctor', '--home', home, '--output', 'json']);
}

/** The daemon's own mode, which the command runs. */
function runMode(home: string, broken: readonly string[]): Promise<string | undefined> {
  const faults = broken.map((name) => join(root, 'proving/broken', `${name}.ts`));
  const missing = faults.find((file) => !existsSync(file));
  if (missing !== undefined) throw new Error(`there is no broken build ${missing}`);
  const imports = faults.flatMap((file) => ['--import', pathToFileURL(file).href]);
  return run([...imports, 'packages/server/src/main.ts', '--home', home, '--doctor']);
}

/** Returns what was wrong; undefined when the report is complete and without a failure. */
async function run(args: readonly string[]): Promise<string | undefined> {
  const child = spawn(process.execPath, args, {
    cwd: root,
    env: { PATH: process.env['PATH'], NODE_DISABLE_COMPILE_CACHE: '1', GATEHOUSE_TOKEN: operatorToken },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = new Promise<number | null>((resolve, reject) => child.once('error', reject).once('close', resolve));
  const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  const said = `ended with code ${code}, ${stderr.trim().slice(-300)}`;
  try {
    const { checks }: { checks: { name: string; status: string; detail: string }[] } = JSON.parse(stdout);
    const failed = checks.filter(({ status }) => status === 'fail');
    return code === 0 && failed.length === 0 && checks.length > 8 ? undefined : `${said}: ${JSON.stringify(failed)}`;
  } catch {
    return `${said}: printed no report: ${stdout.slice(0, 200)}`;
  }
}
