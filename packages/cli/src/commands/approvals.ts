import { type Client, ConflictError, NotFoundError } from '@gatehouse/client';
import type { Result } from '@gatehouse/contract';
import type { Command } from 'commander';
import { connect } from '../connection/target.ts';
import { type Io, printLine } from '../io.ts';
import { type ApprovalRequest, approvalsText, decisionText } from './approvals-text.ts';
import { confirm } from './confirm.ts';
import { addGroup } from './group.ts';
import { type CommonFlags, withConnection } from './options.ts';

type DecisionFlags = CommonFlags & { reason?: string; as?: string };
type AllFlags = DecisionFlags & { session?: string; yes?: true };

/** `gatehouse approvals list | approve | deny | approve-all | deny-all | clear-cache`. */
export function addApprovalsCommand(program: Command, io: Io): void {
  const approvals = addGroup(program, 'approvals')
    .summary('list pending tool calls, and approve or deny them')
    .description('Tool calls that need approval; needs a token with scope admin.');

  withConnection(approvals.command('list', { isDefault: true }))
    .description('Shows all pending calls completely, oldest first.')
    .action(async (flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const { requests, total } = await readPending(client);
      printLine(io.stdout, flags.output === 'json' ? JSON.stringify({ requests, total }) : approvalsText(requests, total, io.now()));
    });

  for (const [name, approved] of [
    ['approve', true],
    ['deny', false],
  ] as const) {
    withReason(approvals.command(`${name} <id>`))
      .description(approved ? 'Approves one call, exactly as listed.' : 'Denies one call; the model sees the reason.')
      .action(async (requestId: string, { reason, as, ...flags }: DecisionFlags) => {
        const { client } = await connect(flags, io);
        const done = await client.call('admin.approval.resolve', { requestId, approved, ...words(reason, as) });
        printLine(io.stdout, flags.output === 'json' ? JSON.stringify(done) : decisionText(done));
      });

    withReason(approvals.command(`${name}-all`))
      .description(`${approved ? 'Approves' : 'Denies'} all pending calls.`)
      .option('--session <key>', 'only those of conversations with this session key')
      .option('-y, --yes', 'skip the confirmation')
      .action(async ({ reason, as, session, yes, ...flags }: AllFlags) => {
        const { client } = await connect(flags, io);
        const choice = { approved, ...words(reason, as) };
        let done: Result<'admin.approval.resolveAll'>;
        if (yes === true) done = await client.call('admin.approval.resolveAll', { ...choice, ...(session !== undefined && { sessionKey: session }) });
        else {
          const { requests, total } = await readPending(client);
          const shown = session === undefined ? requests : requests.filter(({ sessionKey }) => sessionKey === session);
          printLine(io.stderr, approvalsText(shown, session === undefined ? total : shown.length, io.now()));
          await confirm(`${approved ? 'Approve' : 'Deny'} all of them?`, io);
          done = await resolveShown(client, shown, choice);
        }
        printLine(io.stdout, flags.output === 'json' ? JSON.stringify(done) : `${approved ? 'Approved' : 'Denied'} ${done.resolved} calls.`);
      });
  }

  withConnection(approvals.command('clear-cache'))
    .description('Clears denials, so that the same calls ask again.')
    .option('--session <key>', 'only those of conversations with this session key')
    .action(async ({ session, ...flags }: CommonFlags & { session?: string }) => {
      const { client } = await connect(flags, io);
      const done = await client.call('admin.approval.clearDenialCache', session === undefined ? {} : { sessionKey: session });
      printLine(io.stdout, flags.output === 'json' ? JSON.stringify(done) : 'Denials cleared.');
    });
}

function withReason(command: Command): Command {
  return withConnection(command)
    .option('--reason <text>', 'reason; the model sees the reason of a denial')
    .option('--as <name>', 'name to record as approver (default: operator)');
}

function words(reason: string | undefined, as: string | undefined): { reason?: string; approvedBy?: string } {
  return { ...(reason === undefined ? {} : { reason }), ...(as === undefined ? {} : { approvedBy: as }) };
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
