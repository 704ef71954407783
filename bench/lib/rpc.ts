import type { Target } from './targets.ts';

/** One call of a method; its result. */
export async function callRpc({ url, headers }: Target, method: string, params: object = {}): Promise<Readonly<Record<string, unknown>>> {
  const response = await fetch(`${url}/rpc`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
  const { result, error } = (await response.json()) as { readonly result?: Record<string, unknown>; readonly error?: unknown };
  if (result === undefined) throw new Error(`${method}: ${JSON.stringify(error)}`);
  return result;
}
