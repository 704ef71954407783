import { freePort } from '@gatehouse/testkit/free-port';
import { type FakeProvider, startFakeProvider, type FakeProviderOptions } from '../../packages/testkit/src/fake-provider.ts';
import { type Daemon, startDaemon } from '../../proving/lib/daemon.ts';
import { makeHome, removeHome, writeConfig } from '../../proving/lib/home.ts';
import { proofConfig } from '../../proving/lib/provider.ts';
import { rpcCall } from '../../proving/lib/rpc.ts';

/** A daemon from the bundle in a separate process, with a fake provider. */
export interface Product extends AsyncDisposable {
  /** Base address without a trailing slash. */
  readonly url: string;
  /** Secret with scope `*`. */
  readonly token: string;
  readonly port: number;
  readonly home: string;
  readonly provider: FakeProvider;
  readonly daemon: Daemon;
  call(method: string, params?: unknown): Promise<unknown>;
  /** Stops the daemon with SIGTERM and starts it again on the same home and port. */
  restart(): Promise<void>;
}

export async function startProduct(
  options: { readonly provider?: FakeProviderOptions; readonly config?: Parameters<typeof proofConfig>[1] } = {},
): Promise<Product> {
  const provider = await startFakeProvider({ deltas: 6, ...options.provider });
  const home = await makeHome();
  const port = await freePort();
  await writeConfig(home, proofConfig(provider.url, options.config));
  let daemon = await startDaemon({ home, port });
  return {
    url: `http://127.0.0.1:${port}`,
    token: daemon.token,
    port,
    home,
    provider,
    get daemon() {
      return daemon;
    },
    call: (method, params = {}) => rpcCall({ port, token: daemon.token }, method, params),
    async restart() {
      await daemon.stop();
      daemon = await startDaemon({ home, port });
    },
    async [Symbol.asyncDispose]() {
      await daemon.kill();
      await provider.close();
      await removeHome(home);
    },
  };
}

/** Returns the secret of the token for a scope: `tokenOf('rpc')` is that of the one with scope `rpc` in `gateway.tokens`. */
export const tokenOf = (scope: string) => `e2e-token-${scope}-${'y'.repeat(32)}`;
export const scopedTokens = ['rpc', 'api', 'ws', 'mcp-client', 'admin'].map((scope) => ({
  id: `e2e-${scope}`,
  secret: tokenOf(scope),
  scopes: [scope],
}));

/** Waits until `check` holds; returns false after the time limit. */
export async function eventually(check: () => boolean | Promise<boolean>, withinMs: number): Promise<boolean> {
  const deadline = performance.now() + withinMs;
  while (!(await check())) {
    if (performance.now() > deadline) return false;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return true;
}
