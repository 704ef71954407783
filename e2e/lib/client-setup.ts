import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '@gatehouse/testkit/free-port';
import * as z from 'zod';
import type { FakeAnswer, FakeRequest } from '../../packages/testkit/src/fake-provider.ts';
import { startFakeProvider } from '../../packages/testkit/src/fake-provider.ts';
import { root, startDaemon } from '../../proving/lib/daemon.ts';
import { makeHome, removeHome, writeConfig } from '../../proving/lib/home.ts';
import { proofConfig } from '../../proving/lib/provider.ts';
import { rpcCall } from '../../proving/lib/rpc.ts';
import type { ClientDriver } from './client-drivers.ts';

/** Model names that change how clients behave: cache markers, and reasoning in the history. */
const models = ['test-model', 'claude-sonnet-4-5', 'deepseek-reasoner'].map((id) => ({
  id,
  contextWindow: 128_000,
  maxTokens: 8192,
  input: ['text', 'image'],
  reasoning: id === 'deepseek-reasoner',
  cost: { input: 1, output: 2 },
}));

export interface Outcome {
  readonly code: number | string | null;
  readonly output: string;
}

const Body = z.object({
  messages: z.array(z.looseObject({ role: z.string(), content: z.unknown() })).default([]),
  tools: z.array(z.looseObject({ function: z.looseObject({ name: z.string() }) })).default([]),
});

/** Starts a daemon with a scripted model, and a home folder and a working folder for each client. */
export async function startClientSetup({ broken }: { readonly broken?: string } = {}) {
  const provider = await startFakeProvider({ deltas: 6 });
  const [home, dir, port] = await Promise.all([makeHome(), mkdtemp(join(tmpdir(), 'gatehouse-clients-')), freePort()]);
  const config = proofConfig(provider.url, { gateway: { httpBodyLimitBytes: 8_388_608 } });
  await writeConfig(home, { ...config, providers: { local: { ...config.providers.local, models } } });
  const daemon = await startDaemon({ home, port, ...(broken !== undefined && { broken }) });
  const url = `http://127.0.0.1:${port}`;

  /** Runs `gatehouse connect CLIENT --write` for a client, as its user would. */
  async function connect(driver: ClientDriver, { model = 'test-model', name = driver.id, flags = [] as readonly string[] } = {}) {
    const own = join(dir, `${driver.id}-${model}`);
    const work = join(own, 'work');
    await mkdir(work, { recursive: true });
    const args = [join(root, 'dist/cli.js'), 'connect', driver.id, '--write', '--json', '--model', model, '--name', name, ...flags];
    const env = { PATH: process.env['PATH'] ?? '', HOME: own, GATEHOUSE_URL: url, GATEHOUSE_TOKEN: daemon.token };
    const { code, output } = await run(process.execPath, args, { env, cwd: work });
    if (code !== 0) throw new Error(`gatehouse connect ${driver.id}: ${output}`);
    const made = z.object({ token: z.object({ secret: z.string() }), written: z.array(z.object({ file: z.string() })) }).parse(JSON.parse(output));
    return { own, work, secret: made.token.secret, files: made.written.map(({ file }) => file) };
  }

  return {
    provider,
    connect,
    /** Replaces the token of `connect` with a default one of `tokens.create`. */
    async useDefaultToken({ files, secret }: { readonly files: readonly string[]; readonly secret: string }) {
      const { secret: plain } = z
        .looseObject({ secret: z.string() })
        .parse(await rpcCall({ port, token: daemon.token }, 'tokens.create', { scopes: ['api'] }));
      for (const file of files) await writeFile(file, (await readFile(file, 'utf8')).replaceAll(secret, plain));
    },
    /** Starts a client in its folders; requests to other hosts go to a closed local port. */
    start(driver: ClientDriver, packages: string, { own, work }: { readonly own: string; readonly work: string }, args: readonly string[]) {
      const program = join(packages, driver.program);
      const command = program.endsWith('.js') ? [process.execPath, program] : [program];
      const nowhere = 'http://127.0.0.1:9';
      const env = {
        PATH: process.env['PATH'] ?? '',
        HOME: own,
        HTTP_PROXY: nowhere,
        HTTPS_PROXY: nowhere,
        NO_PROXY: '127.0.0.1,localhost',
        DO_NOT_TRACK: '1',
        ...driver.env,
      };
      return run(command[0] ?? '', [...command.slice(1), ...args], { env, cwd: work });
    },
    async [Symbol.asyncDispose]() {
      await daemon.kill();
      await provider.close();
      await killLeftovers(dir);
      await Promise.all([removeHome(home), rm(dir, { recursive: true, force: true, maxRetries: 3 })]);
    },
  };
}

/** Kills the background processes that clients leave behind: each has a home below `dir`. */
async function killLeftovers(dir: string): Promise<void> {
  const pids = (await readdir('/proc').catch(() => [])).map(Number).filter((pid) => pid > 1 && pid !== process.pid);
  for (const pid of pids) {
    const environment = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '');
    if (environment.split('\0').some((entry) => entry.startsWith(`HOME=${dir}/`))) process.kill(pid, 'SIGKILL');
  }
}

export type ClientSetup = Awaited<ReturnType<typeof startClientSetup>>;

function run(
  file: string,
  args: readonly string[],
  options: { readonly env: Readonly<Record<string, string>>; readonly cwd: string },
): Promise<Outcome> {
  return new Promise((resolve) => {
    const child = execFile(file, args, { ...options, timeout: 90_000, maxBuffer: 16_777_216 }, (error, stdout, stderr) => {
      resolve(error === null ? { code: 0, output: stdout } : { code: error.code ?? error.signal ?? null, output: `${stdout}\n${stderr}` });
    });
    child.stdin?.end();
  });
}

/** Returns a model that calls the tool once, for the message that contains `prompt`, and reports it; otherwise it answers with text. */
export function script(prompt: string, call: { readonly name: string; readonly args: object }, done: string, said: string) {
  return (request: FakeRequest): FakeAnswer => {
    const { messages, tools } = Body.parse(request.body);
    const asked = messages.findLastIndex(({ role, content }) => role === 'user' && JSON.stringify(content).includes(prompt));
    const isNewest = asked !== -1 && !messages.slice(asked + 1).some(({ role }) => role === 'assistant' || role === 'tool');
    if (isNewest && tools.some((tool) => tool.function.name === call.name))
      return { toolCalls: [{ id: 'call_1', name: call.name, arguments: JSON.stringify(call.args) }] };
    return { text: messages.at(-1)?.role === 'tool' ? done : said };
  };
}
