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
    .summary('list calls of tools that wait for an approval, and decide on them')
    .description('Calls that agents make only when somebody allows them; needs a token with scope admin.');

  withConnection(approvals.command('list', { isDefault: true }))
    .description('Shows each call that waits, whole, oldest first.')
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
      .description(approved ? 'Allows one call: exactly the one that the list shows.' : 'Denies one call; the model is told the reason.')
      .action(async (requestId: string, { reason, as, ...flags }: DecisionFlags) => {
        const { client } = await connect(flags, io);
        const done = await client.call('admin.approval.resolve', { requestId, approved, ...words(reason, as) });
        printLine(io.stdout, flags.output === 'json' ? JSON.stringify(done) : decisionText(done));
      });

    withReason(approvals.command(`${name}-all`))
      .description(`${approved ? 'Allows' : 'Denies'} every call that waits.`)
      .option('--session <key>', 'only those of conversations with this session key')
      .option('-y, --yes', 'do not ask')
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
    .description('Forgets denials, so that the same calls ask again.')
    .option('--session <key>', 'only those of conversations with this session key')
    .action(async ({ session, ...flags }: CommonFlags & { session?: string }) => {
      const { client } = await connect(flags, io);
      const done = await client.call('admin.approval.clearDenialCache', session === undefined ? {} : { sessionKey: session });
      printLine(io.stdout, flags.output === 'json' ? JSON.stringify(done) : 'Denials are forgotten.');
    });
}

function withReason(command: Command): Command {
  return withConnection(command)
    .option('--reason <text>', 'why; the model is told a reason for a denial')
    .option('--as <name>', 'a name to remember (default: operator)');
}

function words(reason: string | undefined, as: string | undefined): { reason?: string; approvedBy?: string } {
  return { ...(reason === undefined ? {} : { reason }), ...(as === undefined ? {} : { approvedBy: as }) };
}

/** Calls that came while the question stood were not shown: they are not decided by its answer. */
async function resolveShown(client: Client, shown: readonly ApprovalRequest[], choice: { readonly approved: boolean }) {
  const requestIds: string[] = [];
  for (const { requestId } of shown) {
    try {
      await client.call('admin.approval.resolve', { requestId, ...choice });
      requestIds.push(requestId);
    } catch (error) {
      // Somebody else has decided meanwhile, or its time is over.
      if (!(error instanceof ConflictError || error instanceof NotFoundError)) throw error;
    }
  }
  return { resolved: requestIds.length, requestIds };
}

/** A page holds fewer requests where their arguments are long. */
async function readPending(client: Client): Promise<{ requests: readonly ApprovalRequest[]; total: number }> {
  const requests: ApprovalRequest[] = [];
  for (;;) {
    const last = requests.at(-1);
    const page = await client.call('admin.approval.pending', last === undefined ? {} : { after: last.requestId });
    requests.push(...page.requests);
    if (page.requests.length === 0 || requests.length >= page.total) return { requests, total: Math.max(page.total, requests.length) };
  }
}
