import type { Client } from '@gatehouse/client';
import type { TraceRecord } from '@gatehouse/contract';

/** Loads the records that a reference leads to: a record, a turn, a trace, or all that one request started. */
export async function loadTrace(client: Client, ref: string, signal: AbortSignal): Promise<readonly TraceRecord[]> {
  return (await client.call('obs.trace.get', { ref }, { signal })).records;
}
