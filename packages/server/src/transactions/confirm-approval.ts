import type { PartRow } from '../features/channels/delivery/api.ts';
import { addParts, withdrawParts } from '../features/channels/delivery/store.ts';
import { operation } from '../kernel/db/operation.ts';

/** Stores the confirmation of an approval for its chat; a question that was not sent yet is withdrawn instead. Returns whether something is to be sent. */
export const confirmApproval = operation(
  'channels.confirmApproval',
  async (tx, { questionKey, parts }: { readonly questionKey: string; readonly parts: readonly PartRow[] }): Promise<boolean> =>
    (await withdrawParts(tx, { opKey: questionKey })) && addParts(tx, parts),
);
