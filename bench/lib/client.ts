import { join } from 'node:path';
import type { Churn, ChurnResult } from './churn.ts';
import type { HttpLoad, HttpLoadResult } from './http-load.ts';
import { clientCpu, spawnPinned } from './proc.ts';
import type { WsLoad, WsLoadResult } from './ws-load.ts';

const entry = join(import.meta.dirname, 'client-process.ts');

export const runHttpLoad = (load: HttpLoad): Promise<HttpLoadResult> => run<HttpLoadResult>({ http: load }, load.ms);
export const runWsLoad = (load: WsLoad): Promise<WsLoadResult> => run<WsLoadResult>({ ws: load }, load.ms);
export const runChurn = (job: Churn): Promise<ChurnResult> => run<ChurnResult>({ churn: job }, job.ms);

function run<Result>(job: object, ms: number): Promise<Result> {
  const { promise, resolve, reject } = Promise.withResolvers<Result>();
  const child = spawnPinned([entry], clientCpu, { env: process.env, stdio: ['pipe', 'pipe', 'pipe'] });
  let out = '';
  let err = '';
  child.stdout?.on('data', (part: Buffer) => (out += part.toString()));
  child.stderr?.on('data', (part: Buffer) => (err += part.toString()));
  const force = setTimeout(() => child.kill('SIGKILL'), ms + 20_000);
  child.on('error', reject);
  // What ended early says why by its code.
  child.stdin?.on('error', () => undefined);
  child.stdin?.end(JSON.stringify(job));
  child.on('close', (code) => {
    clearTimeout(force);
    if (code !== 0) return reject(new Error(`load client ended with ${code}: ${err.slice(0, 500)}`));
    resolve(JSON.parse(out));
  });
  return promise;
}
