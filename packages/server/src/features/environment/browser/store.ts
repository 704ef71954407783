import { operation, query } from '../../../kernel/db/operation.ts';

export interface BrowserProfileRow {
  readonly agentId: string;
  readonly sealed: string;
  readonly savedAtMs: number;
}

const byAgent = query<{ readonly agentId: string }, { readonly sealed: string }>(({ db, p }) =>
  db.selectFrom('browserProfile').select('sealed').where('agentId', '=', p('agentId')),
);

export const loadBrowserProfile = operation('browser.loadProfile', async (tx, input: { readonly agentId: string }): Promise<string | null> => {
  const row = await tx.get(byAgent, input);
  return row?.sealed ?? null;
});

const upsert = query<BrowserProfileRow>(({ db, each }) =>
  db
    .insertInto('browserProfile')
    .values(each(['agentId', 'sealed', 'savedAtMs']))
    .onConflict((conflict) =>
      conflict.column('agentId').doUpdateSet((eb) => ({ sealed: eb.ref('excluded.sealed'), savedAtMs: eb.ref('excluded.savedAtMs') })),
    ),
);

export const saveBrowserProfile = operation('browser.saveProfile', async (tx, input: BrowserProfileRow): Promise<void> => {
  await tx.run(upsert, input);
});

const remove = query<{ readonly agentId: string }>(({ db, p }) => db.deleteFrom('browserProfile').where('agentId', '=', p('agentId')));

export const deleteBrowserProfile = operation('browser.deleteProfile', async (tx, input: { readonly agentId: string }): Promise<void> => {
  await tx.run(remove, input);
});

const all = query<object, { readonly agentId: string }>(({ db }) => db.selectFrom('browserProfile').select('agentId').orderBy('agentId'));

/** Returns the agents that have a profile. */
export const listBrowserProfiles = operation('browser.listProfiles', async (tx): Promise<string[]> =>
  (await tx.all(all, {})).map(({ agentId }) => agentId),
);

export const browserOperations = [loadBrowserProfile, saveBrowserProfile, deleteBrowserProfile, listBrowserProfiles];
