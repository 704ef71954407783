import { operation, query } from '../../../../../kernel/db/operation.ts';

export interface ActivityKey {
  readonly channelType: string;
  readonly channelId: string;
  readonly agentId: string;
}

export interface ActivityRow extends ActivityKey {
  readonly lastActiveAtMs: number;
  readonly messagesSent: number;
  readonly messagesReceived: number;
}

/** Channels kept; those that were quiet for the longest time are dropped. */
const maxKept = 2_000;

const add = query<ActivityRow>(({ db, sql, each }) =>
  db
    .insertInto('channelActivity')
    .values(each(['channelType', 'channelId', 'agentId', 'lastActiveAtMs', 'messagesSent', 'messagesReceived']))
    .onConflict((conflict) =>
      conflict.columns(['channelType', 'channelId', 'agentId']).doUpdateSet({
        lastActiveAtMs: sql<number>`excluded.last_active_at_ms`,
        messagesSent: sql<number>`channel_activity.messages_sent + excluded.messages_sent`,
        messagesReceived: sql<number>`channel_activity.messages_received + excluded.messages_received`,
      }),
    ),
);

const dropQuiet = query<{ beforeMs: number }>(({ db, p }) => db.deleteFrom('channelActivity').where('lastActiveAtMs', '<', p('beforeMs')));

const newestKept = query<{ kept: number }, { lastActiveAtMs: number }>(({ db, p }) =>
  db.selectFrom('channelActivity').select('lastActiveAtMs').orderBy('lastActiveAtMs', 'desc').offset(p('kept')).limit(1),
);

/** Adds what happened since the last call, and drops channels that were quiet since `beforeMs`, or beyond the limit. */
export const addActivity = operation(
  'obs.addActivity',
  async (tx, { rows, beforeMs }: { readonly rows: readonly ActivityRow[]; readonly beforeMs: number }): Promise<void> => {
    for (const row of rows) await tx.run(add, row);
    await tx.run(dropQuiet, { beforeMs });
    const beyond = await tx.get(newestKept, { kept: maxKept });
    if (beyond !== undefined) await tx.run(dropQuiet, { beforeMs: beyond.lastActiveAtMs + 1 });
  },
);

const all = query<object, ActivityRow>(({ db }) =>
  db.selectFrom('channelActivity').select(['channelType', 'channelId', 'agentId', 'lastActiveAtMs', 'messagesSent', 'messagesReceived']),
);

export const readActivity = operation('obs.activity', async (tx): Promise<ActivityRow[]> => tx.all(all, {}));

const clear = query<object>(({ db }) => db.deleteFrom('channelActivity'));

/** Deletes all rows; returns how many. */
export const clearActivity = operation('obs.clearActivity', async (tx): Promise<number> => (await tx.run(clear, {})).changes);

export const activityOperations = [addActivity, readActivity, clearActivity];
