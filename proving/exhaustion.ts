import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { freePort } from '@gatehouse/testkit/free-port';
import { type Daemon, residentMbOf, spawnDaemon, startDaemon } from './lib/daemon.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { proofConfig } from './lib/provider.ts';

/** Proves what happens to a daemon whose provider answers without end, and to a second daemon on its home. */
export interface ExhaustionReport {
  readonly sentMegabytes: number;
  readonly peakMegabytes: number;
  readonly wrong: readonly string[];
}

const container = ['unshare', '--user', '--map-root-user', '--pid', '--fork', '--kill-child', '--mount-proc'] as const;
const exitRunning = 75;

/** Undefined where this machine does not let a process create namespaces. */
export function containersMissing(): string | undefined {
  return spawnSync(container[0], [...container.slice(1), 'true']).status === 0 ? undefined : 'unshare --pid is not permitted here';
}

/** Three streams at once, each of `megabytes`, with a heap of 1 GB. */
export async function proveEndlessProvider(options: { readonly megabytes: number; readonly broken?: string }): Promise<ExhaustionReport> {
  let sent = 0;
  const frame = Buffer.from(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'x'.repeat(8000) } }] })}\n\n`);
  const provider = createServer((incoming, outgoing) => {
    incoming.resume();
    outgoing.writeHead(200, { 'content-type': 'text/event-stream' });
    void pour(outgoing);
  }).listen(0, '127.0.0.1');
  async function pour(outgoing: ServerResponse): Promise<void> {
    let goOn = () => {};
    outgoing.on('drain', () => goOn());
    outgoing.on('close', () => goOn());
    for (let left = options.megabytes * 1e6; left > 0 && !outgoing.destroyed; left -= frame.length) {
      sent += frame.length;
      if (!outgoing.write(frame) && !outgoing.destroyed) await new Promise<void>((resolve) => (goOn = resolve));
    }
    outgoing.end('data: [DONE]\n\n');
  }
  await once(provider, 'listening');
  const home = await makeHome();
  const port = await freePort();
  await writeConfig(home, proofConfig(`http://127.0.0.1:${(provider.address() as AddressInfo).port}/v1`));
  let daemon: Daemon | undefined;
  const wrong: string[] = [];
  let peakMb = 0;
  try {
    daemon = await startDaemon({
      home,
      port,
      // A broken build is loaded by the same variable.
      ...(options.broken === undefined ? { env: { NODE_OPTIONS: '--max-old-space-size=1024' } } : { broken: options.broken }),
    });
    const { pid, token } = daemon;
    const look = setInterval(() => void residentMbOf(pid).then((mb) => (peakMb = Math.max(peakMb, mb))), 20);
    const ends = await Promise.all(Array.from({ length: 3 }, () => lastLines(port, token)));
    clearInterval(look);
    for (const end of ends) if (!/"error"[\s\S]*data: \[DONE\]\s*$/.test(end)) wrong.push(`a stream ended otherwise: ${end.slice(-200)}`);
    const health = await fetch(`http://127.0.0.1:${port}/health`).then(
      ({ status }) => status,
      () => 0,
    );
    if (health !== 200) wrong.push(`/health answered ${health}`);
    if (peakMb > 480) wrong.push(`the daemon took ${Math.round(peakMb)} MiB`);
    return { sentMegabytes: Math.round(sent / 1e6), peakMegabytes: Math.round(peakMb), wrong };
  } finally {
    await daemon?.kill();
    provider.closeAllConnections();
    provider.close();
    await removeHome(home);
  }
}

async function lastLines(port: number, token: string): Promise<string> {
  let tail = '';
  try {
    const response = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'local/test-model', stream: true, messages: [{ role: 'user', content: 'hello' }] }),
    });
    for await (const chunk of response.body ?? []) tail = (tail + Buffer.from(chunk).toString()).slice(-20_000);
    return tail;
  } catch (error) {
    return `${tail}\n${String(error)}`;
  }
}

/** Starts two daemons on one home, each in a separate container. */
export async function proveTwoContainers(options: { readonly broken?: string } = {}): Promise<{ readonly wrong: readonly string[] }> {
  const home = await makeHome();
  await writeConfig(home, proofConfig('http://127.0.0.1:9/v1'));
  const how = { home, under: container, ...(options.broken !== undefined && { broken: options.broken }) };
  const wrong: string[] = [];
  const first = await startDaemon({ ...how, port: await freePort() });
  const second = spawnDaemon({ ...how, port: await freePort() });
  try {
    const late = new Promise<undefined>((resolve) => setTimeout(resolve, 15_000, undefined).unref());
    const exit = await Promise.race([second.exited, late]);
    if (exit?.code !== exitRunning) wrong.push(`the second daemon ended with ${exit === undefined ? 'nothing: it runs' : exit.code}`);
    const { status } = await fetch(`http://127.0.0.1:${first.port}/health?ready`);
    if (status !== 200) wrong.push(`the first daemon answered ${status}`);
    return { wrong };
  } finally {
    await Promise.all([first.kill(), second.kill()]);
    await removeHome(home);
  }
}
