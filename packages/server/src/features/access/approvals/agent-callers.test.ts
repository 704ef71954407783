import { fixed } from '../../../kernel/config/live.ts';
import { createStepClock } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import type { CallContext } from '../../../kernel/call-context.ts';
import { auditMigrations } from '../../../kernel/db/audit.ts';
import { openInlineDb } from '../../../kernel/db/sqlite/inline.ts';
import { createEventBus } from '../../../kernel/event-bus.ts';
import { silentLog } from '../../../kernel/log.ts';
import { createAuditQuery } from '../../operations/observability/audit-query.ts';
import { queryAudit } from '../../operations/observability/audit-store.ts';
import { createApprovals } from './approvals.ts';
import { ApprovalsConfig } from './config.ts';
import { nodeMigrations } from '../../operations/nodes/migrations.ts';
import { approvalMigrations } from './migrations.ts';
import { operation } from '../../../kernel/db/operation.ts';
import { approvalOperations, askForCall } from './store.ts';

/** A tool of an agent that acts for an all-powerful token. */
const call: CallContext = {
  identity: { principalId: 'token:ada', tokenId: 'ada', scopes: ['*'] },
  traceId: '0'.repeat(32),
  requestId: 'r',
  signal: new AbortController().signal,
  transport: 'process',
  agentCaller: { agentId: 'default', principalId: 'token:ada', conversationRef: 'cv_1' },
};

test('no agent decides about calls of agents, whatever its token may do', async () => {
  await using db = await openInlineDb({
    migrations: [...auditMigrations, ...approvalMigrations, ...nodeMigrations],
    operations: [...approvalOperations, queryAudit],
  });
  const bus = createEventBus((error) => {
    throw error;
  });
  using approvals = await createApprovals({
    db,
    bus,
    clock: createStepClock(),
    log: silentLog,
    bootId: 'boot',
    config: fixed(ApprovalsConfig().parse({})),
    hideSecrets: (text) => text,
    printKey: String,
    askApproval: operation('approvals.ask', askForCall),
    withdrawApproval: operation('approvals.withdraw', async () => {}),
    announceMessage: () => {},
    resume: () => {},
  });
  const choice = { approved: true, approvedBy: 'operator' };
  const { methods } = approvals;
  for (const attempt of [
    () => methods['admin.approval.pending']({}, call),
    () => methods['admin.approval.resolve']({ requestId: 'ap_1', ...choice }, call),
    () => methods['admin.approval.resolveAll'](choice, call),
    () => methods['admin.approval.clearDenialCache']({}, call),
    () => createAuditQuery({ db, redactText: (text) => text })['obs.audit.query']({ limit: 1 }, call),
  ])
    await expect(attempt()).rejects.toMatchObject({ code: 'denied' });
});
