import { buildIn } from './patch.ts';

/** Sends the message of a run before its end is stored, under a new key each time: a process that resumes the run sends it again. */
buildIn({
  name: 'resend-on-resume',
  module: 'features/unattended/cron/occurrences/runner.ts',
  replace: [
    {
      from: 'const done = await db.write(deps.execute.finish, { ...plan,',
      to: `if (plan.inbox !== undefined) await db.write(deps.execute.finish, plan);
    await new Promise((resolve) => setTimeout(resolve, 60));
    const done = await db.write(deps.execute.finish, { ...plan, inbox: undefined, sent: true,`,
    },
  ],
});
buildIn({
  name: 'resend-on-resume',
  module: 'features/unattended/cron/occurrences/agent-turn.ts',
  replace: [
    { from: 'settle(ended) {', to: 'async settle(ended) {' },
    {
      from: 'plan = turn.planEnd(result);',
      to: `plan = turn.planEnd(result);
        if (plan.inbox !== undefined) await deps.db.write(deps.finish, plan);
        await new Promise((resolve) => setTimeout(resolve, 60));
        plan = { ...plan, inbox: undefined, sent: true };`,
    },
  ],
});
buildIn({
  name: 'resend-on-resume',
  module: 'features/unattended/cron/occurrences/finish.ts',
  replace: [
    {
      from: "opKey: deliveryKeyOf(executionId),\n    digest: hash('sha256', text),\n    source: 'cron',\n    agentId,\n    conversationRef: null,\n    principalId: work.principalId,",
      to: "opKey: newId('op'),\n    digest: hash('sha256', text),\n    source: 'cron',\n    agentId,\n    conversationRef: null,\n    principalId: work.principalId,",
    },
  ],
});
buildIn({
  name: 'resend-on-resume',
  module: 'transactions/finish-occurrence.ts',
  replace: [
    {
      from: 'async (\n    tx,\n    { claim, end: planned, dependency, defaultMaxErrors, inbox, conversation, systemEvent, late }: Finish,\n  ): Promise<Finished | undefined> => {',
      to: `async (tx, { claim, end: planned, dependency, defaultMaxErrors, inbox, conversation, systemEvent, late, sent }: any): Promise<Finished | undefined> => {
    if (inbox !== undefined && sent !== true) {
      await deliverMessage(tx, inbox);
      return undefined;
    }`,
    },
  ],
});
