import type { Client } from '@gatehouse/client';
import type { ParamsInput, Result } from '@gatehouse/contract';
import { usageError } from '../failure.ts';

type Wanted = ParamsInput<'tokens.create'> & { readonly id: string };
type Listed = Result<'tokens.list'>['tokens'][number];

const narrow = new Set(['api', 'mcp-client']);

/** Finds the token to replace. Refuses names of tokens that this command did not create. */
export async function findFormerToken(client: Client, id: string): Promise<Listed | undefined> {
  const former = (await client.call('tokens.list')).tokens.find((one) => one.id === id);
  if (former === undefined) return undefined;
  const isOurs = former.source === 'created' && former.scopes.length > 0 && former.scopes.every((scope) => narrow.has(scope));
  if (!isOurs) throw usageError(`The token ${id} was not created for a client, so it is not replaced.`, 'Choose another name with --name.');
  return former;
}

/** Creates a client's token and replaces the former one atomically: if this fails, the former secret stays valid. */
export function replaceToken(client: Client, former: Listed | undefined, wanted: Wanted): Promise<Result<'tokens.create'>> {
  return client.call('tokens.create', { ...wanted, ...(former !== undefined && { replace: true }) });
}
