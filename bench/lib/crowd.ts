import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '@gatehouse/testkit/free-port';
import { startHolder, type Holder } from './holder.ts';
import { clientCpu, get, start, type Running } from './proc.ts';
import { callRpc } from './rpc.ts';
import { product, type ProductOptions, type Target } from './targets.ts';
import { openingRequest } from '../scenarios/held.ts';

/** Graphs that run at once, their layers, and the sub-agents of each layer. */
export const crowd = { graphs: 20, layers: 2, wide: 10 } as const;
export const atOnce = crowd.graphs * crowd.wide;

/** Each node waits for one of the layer before. */
const nodes = Array.from({ length: crowd.layers * crowd.wide }, (_, n) => ({
  node_id: `part-${n}`,
  task: `Look at part ${n} of the store and say what is left of it.`,
  agent: 'crew',
  ...(n >= crowd.wide && { depends_on: [`part-${n - crowd.wide}`] }),
}));

/** A daemon with two hundred slots for sub-agents and a slow model. */
export interface CrowdServer extends AsyncDisposable {
  readonly running: Running;
  readonly target: Target;
  readonly secret: string;
  /** Runs all graphs; done when all have ended, and each of their model calls was made once. */
  run(): Promise<{ readonly mostOpen: number; readonly wallMs: number }>;
}

export async function startCrowd(
  upstreamUrl: string,
  options: { readonly delayMs: number; readonly product?: ProductOptions },
): Promise<CrowdServer> {
  const stack = new AsyncDisposableStack();
  try {
    const port = await freePort();
    const modelUrl = `http://127.0.0.1:${port}`;
    const model = await start({
      args: [join(import.meta.dirname, '..', 'reference', 'slow-model.ts')],
      env: { PORT: String(port), DELAY_MS: String(options.delayMs) },
      healthUrl: `${modelUrl}/health`,
      cpu: clientCpu,
    });
    stack.defer(model.stop);
    const subject = await product(upstreamUrl, {
      providers: { slow: { type: 'openai-compatible', baseUrl: `${modelUrl}/v1`, apiKey: 'sk-slow', models: [{ id: 'slow' }] } },
      agents: { crew: { model: 'slow/slow' } },
      sections: { security: { agentToAgent: { graphMaxConcurrency: crowd.wide, graphMaxGlobalSubAgents: atOnce } } },
      ...options.product,
    });
    if (subject === undefined) throw new Error('the product is not built');
    stack.defer(subject.dispose);
    const running = await subject.start({ probe: true });
    stack.defer(running.stop);
    const target = subject.target(running);
    const holder = startHolder();
    stack.defer(holder.stop);
    await listenTo(holder, target, 'graph:completed');
    return {
      running,
      target,
      secret: (target.headers['authorization'] ?? '').replace('Bearer ', ''),
      run: () => runAll(target, holder, modelUrl),
      [Symbol.asyncDispose]: () => stack.disposeAsync(),
    };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

async function runAll(target: Target, holder: Holder, modelUrl: string): Promise<{ readonly mostOpen: number; readonly wallMs: number }> {
  const look = async (): Promise<{ readonly served: number; readonly most: number }> => JSON.parse((await get(modelUrl)).body);
  const [{ marks }, { served }] = [await holder.state(), await look()];
  const started = performance.now();
  for (let n = 0; n < crowd.graphs; n += 1) await callRpc(target, 'graph.execute', { nodes, label: `Crowd ${n}` });
  for (let tries = 0; (await holder.state()).marks < marks + crowd.graphs; tries += 1) {
    if (tries > 1_200) throw new Error(`${(await holder.state()).marks - marks} of ${crowd.graphs} graphs ended`);
    await sleep(50);
  }
  const wallMs = performance.now() - started;
  const after = await look();
  const calls = crowd.graphs * nodes.length;
  if (after.served - served !== calls) throw new Error(`${after.served - served} model calls were answered instead of ${calls}`);
  return { mostOpen: after.most, wallMs };
}

/** Counts the events of a kind. */
export async function listenTo(holder: Holder, target: Target, kind: string): Promise<void> {
  const { open } = await holder.hold({ url: target.url, request: openingRequest('sse', target, `?kinds=${kind}`), count: 1, mark: `event: ${kind}` });
  if (open !== 1) throw new Error(`the events ${kind} cannot be listened to`);
}
