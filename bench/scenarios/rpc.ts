import { runWsLoad } from '../lib/client.ts';
import type { Measures } from '../lib/measures.ts';
import { cpuUs } from '../lib/proc.ts';
import type { Target } from '../lib/targets.ts';
import type { WsLoadResult } from '../lib/ws-load.ts';

export interface RpcSample extends WsLoadResult {
  readonly cpuPerCall: number;
}

const message = { jsonrpc: '2.0', method: 'system.ping', params: {}, id: 1 };

/** `system.ping` over 16 WebSockets, product and bare `ws` in turn; CPU per call. */
export async function runRpc(
  options: { readonly bare: Target; readonly product: Target; readonly rounds: number; readonly ms: number },
  measures: Measures,
): Promise<Map<string, RpcSample[]>> {
  const samples = new Map<string, RpcSample[]>();
  for (let round = -1; round < options.rounds; round += 1) {
    const order = [options.bare, options.product];
    for (const target of round % 2 === 0 ? order : order.toReversed()) {
      const { pid } = target;
      if (pid === undefined) throw new Error(`${target.name} has no process`);
      const before = cpuUs(pid);
      const result = await runWsLoad({ url: `${target.url}/ws`, headers: target.headers, message, connections: 16, ms: options.ms });
      const sample = { ...result, cpuPerCall: (cpuUs(pid) - before) / result.good };
      if (result.good === 0) throw new Error(`${target.name}: no ping was answered: ${JSON.stringify(result.errors)}`);
      if (round >= 0) samples.set(target.name, [...(samples.get(target.name) ?? []), sample]);
    }
  }
  const bare = samples.get(options.bare.name) ?? [];
  const product = samples.get(options.product.name) ?? [];
  measures.add('ws16 cpu/bare', ...product.map((sample, round) => sample.cpuPerCall / (bare[round]?.cpuPerCall ?? NaN)));
  return samples;
}
