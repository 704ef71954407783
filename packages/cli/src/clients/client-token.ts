import type { Client } from '@gatehouse/client';
import type { ParamsInput, Result } from '@gatehouse/contract';
import { usageError } from '../failure.ts';

type Wanted = ParamsInput<'tokens.create'> & { readonly id: string };
type Listed = Result<'tokens.list'>['tokens'][number];

const narrow = new Set(['api', 'mcp-client']);

/** Finds the token that the new one replaces. Refuses names of tokens that this command cannot have made. */
export async function findFormerToken(client: Client, id: string): Promise<Listed | undefined> {
  const former = (await client.call('tokens.list')).tokens.find((one) => one.id === id);
  if (former === undefined) return undefined;
  const isOurs = former.source === 'created' && former.scopes.length > 0 && former.scopes.every((scope) => narrow.has(scope));
  if (!isOurs) throw usageError(`The token ${id} exists and was not made for a client: it will not be replaced.`, 'Choose another name with --name.');
  return former;
}

/** Creates the token of a client in place of its former one, in one step: when it fails the former secret stays valid. */
export function replaceToken(client: Client, former: Listed | undefined, wanted: Wanted): Promise<Result<'tokens.create'>> {
  return client.call('tokens.create', { ...wanted, ...(former !== undefined && { replace: true }) });
}
