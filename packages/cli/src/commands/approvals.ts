import { type Client, ConflictError, NotFoundError } from '@gatehouse/client';
import type { Result } from '@gatehouse/contract';
import type { Command } from 'commander';
import { connect } from '../connection/target.ts';
import { type Io, printLine } from '../io.ts';
import { type ApprovalRequest, approvalsText, decisionText } from './approvals-text.ts';
import { confirm } from './confirm.ts';
import { addGroup } from './group.ts';
import { type CommonFlags, withConnection } from './options.ts';
import { print } from './print.ts';

type Decision = 'approve' | 'deny';
type DecisionFlags = CommonFlags & { reason?: string; as?: string };
type AllFlags = DecisionFlags & { session?: string; yes?: true };

/** `gatehouse approvals list | approve | deny | approve-all | deny-all | clear-cache`. */
export function addApprovalsCommand(program: Command, io: Io): void {
  const approvals = addGroup(program, 'approvals')
    .summary('list pending tool calls, and approve or deny them')
    .description('Tool calls that need approval; needs a token with scope admin.');

  addList(approvals, io);
  for (const decision of ['approve', 'deny'] as const) {
    addDecideOne(approvals, io, decision);
    addDecideAll(approvals, io, decision);
  }
  addClearCache(approvals, io);
}

function addList(approvals: Command, io: Io): void {
  withConnection(approvals.command('list', { isDefault: true }))
    .description('Shows all pending calls completely, oldest first.')
    .action(async (flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const { requests, total } = await readPending(client);
      print(io, flags, { requests, total }, () => approvalsText(requests, total, io.now()));
    });
}

function addDecideOne(approvals: Command, io: Io, decision: Decision): void {
  const approved = decision === 'approve';
  withReason(approvals.command(`${decision} <id>`))
    .description(approved ? 'Approves one call, exactly as listed.' : 'Denies one call; the model sees the reason.')
    .action(async (requestId: string, { reason, as, ...flags }: DecisionFlags) => {
      const { client } = await connect(flags, io);
      const done = await client.call('admin.approval.resolve', { requestId, approved, reason, approvedBy: as });
      print(io, flags, done, decisionText);
    });
}

function addDecideAll(approvals: Command, io: Io, decision: Decision): void {
  const approved = decision === 'approve';
  withReason(approvals.command(`${decision}-all`))
    .description(`${approved ? 'Approves' : 'Denies'} all pending calls.`)
    .option('--session <key>', 'only those of conversations with this session key')
    .option('-y, --yes', 'skip the confirmation')
    .action(async ({ reason, as, session, yes, ...flags }: AllFlags) => {
      const { client } = await connect(flags, io);
      const choice = { approved, reason, approvedBy: as };
      let done: Result<'admin.approval.resolveAll'>;
      if (yes === true) done = await client.call('admin.approval.resolveAll', { ...choice, sessionKey: session });
      else {
        const { requests, total } = await readPending(client);
        const shown = session === undefined ? requests : requests.filter(({ sessionKey }) => sessionKey === session);
        printLine(io.stderr, approvalsText(shown, session === undefined ? total : shown.length, io.now()));
        await confirm(`${approved ? 'Approve' : 'Deny'} all of them?`, io);
        done = await resolveShown(client, shown, choice);
      }
      print(io, flags, done, () => `${approved ? 'Approved' : 'Denied'} ${done.resolved} calls.`);
    });
}

function addClearCache(approvals: Command, io: Io): void {
  withConnection(approvals.command('clear-cache'))
    .description('Clears denials, so that the same calls ask again.')
    .option('--session <key>', 'only those of conversations with this session key')
    .action(async ({ session, ...flags }: CommonFlags & { session?: string }) => {
      const { client } = await connect(flags, io);
      const done = await client.call('admin.approval.clearDenialCache', { sessionKey: session });
      print(io, flags, done, () => 'Denials cleared.');
    });
}

function withReason(command: Command): Command {
  return withConnection(command)
    .option('--reason <text>', 'reason; the model sees the reason of a denial')
    .option('--as <name>', 'name to record as approver (default: operator)');
}

/** Decides on the calls that were shown, not on those that arrived during the confirmation. */
async function resolveShown(client: Client, shown: readonly ApprovalRequest[], choice: { readonly approved: boolean }) {
  const requestIds: string[] = [];
  for (const { requestId } of shown) {
    try {
      await client.call('admin.approval.resolve', { requestId, ...choice });
      requestIds.push(requestId);
    } catch (error) {
      // Someone else has decided in the meantime, or the request has expired.
      if (!(error instanceof ConflictError || error instanceof NotFoundError)) throw error;
    }
  }
  return { resolved: requestIds.length, requestIds };
}

/** Loads all pages: a page has fewer requests when their arguments are long. */
async function readPending(client: Client): Promise<{ requests: readonly ApprovalRequest[]; total: number }> {
  const requests: ApprovalRequest[] = [];
  for (;;) {
    const last = requests.at(-1);
    const page = await client.call('admin.approval.pending', last === undefined ? {} : { after: last.requestId });
    requests.push(...page.requests);
    if (page.requests.length === 0 || requests.length >= page.total) return { requests, total: Math.max(page.total, requests.length) };
  }
}
