import { Command, CommanderError } from 'commander';
import { addAcpCommand } from './commands/acp.ts';
import { addAgentsCommand } from './commands/agents.ts';
import { addApprovalsCommand } from './commands/approvals.ts';
import { addAskCommand } from './commands/ask.ts';
import { addAuditCommand } from './commands/audit.ts';
import { addBackupCommand, addRestoreCommand } from './commands/backup.ts';
import { addCallCommand } from './commands/call.ts';
import { addChatCommand } from './commands/chat.ts';
import { addCompletionCommand } from './commands/completion.ts';
import { addConfigCommand } from './commands/config.ts';
import { addConnectCommand } from './commands/connect.ts';
import { addContextCommand } from './commands/context.ts';
import { addCronCommand } from './commands/cron.ts';
import { addDiagnosisCommands } from './commands/diagnosis.ts';
import { addDoctorCommand } from './commands/doctor.ts';
import { addEvalCommand } from './commands/eval.ts';
import { addGraphCommand } from './commands/graph.ts';
import { addHeartbeatCommand } from './commands/heartbeat.ts';
import { addImportCommand } from './commands/import.ts';
import { addInboxCommand } from './commands/inbox.ts';
import { addLogsCommand } from './commands/logs.ts';
import { addMcpCommand } from './commands/mcp.ts';
import { addMediaCommand } from './commands/media.ts';
import { addKnowledgeCommand } from './commands/knowledge.ts';
import { addMemoryCommand } from './commands/memory.ts';
import { addModelsCommand } from './commands/models.ts';
import { addProvidersCommand } from './commands/providers.ts';
import { addRunsCommand } from './commands/runs.ts';
import { addSecretsCommand } from './commands/secrets.ts';
import { addSessionsCommand } from './commands/sessions.ts';
import { addSetupCommand } from './commands/setup/setup.ts';
import { addSkillsCommand } from './commands/skills.ts';
import { addStartCommand } from './commands/start.ts';
import { addStatusCommand } from './commands/status.ts';
import { addStorageCommand } from './commands/storage.ts';
import { addTokensCommand } from './commands/tokens.ts';
import { addToolsCommand } from './commands/tools.ts';
import { addUsageCommand } from './commands/usage.ts';
import { addChannelsCommand } from './commands/channels.ts';
import { addWebhooksCommand } from './commands/webhooks.ts';
import { addWorkspaceCommand } from './commands/workspace.ts';
import { cliExitCodes, exitCode, type SetExit } from './exit-codes.ts';
import { type CliError, describeFailure, usageError } from './failure.ts';
import { type Io, printLine } from './io.ts';
import { nearest } from './nearest.ts';
import { createJqOutput, type FilterBy } from './render/jq.ts';
import { withLook } from './render/look.ts';
import { plainText } from './render/plain.ts';
import { version } from './version.ts';

/** Runs one command line (without Node and script) and returns the exit code. Never throws for user errors. */
export async function runCli(args: readonly string[], io: Io): Promise<number> {
  let code: number = exitCode.ok;
  const jq = args.some((arg) => arg === '--jq' || arg.startsWith('--jq=')) ? createJqOutput(io) : undefined;
  const own = jq === undefined ? io : { ...io, stdout: jq.stdout };
  const filterBy: FilterBy = async (filter) => jq?.filterBy(filter);
  const program = createProgram(own, (next) => (code = next), filterBy);
  program.hook('preAction', async (_program, command) => {
    const { jq: filter } = command.opts<{ readonly jq?: string }>();
    if (filter !== undefined) await filterBy(filter);
  });
  try {
    await withLook(own, () => program.parseAsync(args, { from: 'user' }));
    await jq?.end();
    return code;
  } catch (error) {
    // The parser has already printed its message.
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCode.ok : exitCode.usage;
    return report(error, wantsJson(args), io);
  }
}

function createProgram(io: Io, setExit: SetExit, filterBy: FilterBy): Command {
  const program = new Command('gatehouse')
    .description('The self-hosted gateway through which programs and people drive AI agents.')
    .version(version, '-V, --version')
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({ writeOut: (text) => void io.stdout.write(text), writeErr: (text) => void io.stderr.write(text) })
    .addHelpText('after', `\nExit codes:\n${cliExitCodes.map(({ code, text }) => `  ${String(code).padEnd(4)}${text}`).join('\n')}`);
  addSetupCommand(program, io, setExit);
  addStartCommand(program, io, setExit);
  addStatusCommand(program, io);
  addChatCommand(program, io, setExit);
  addAskCommand(program, io, setExit);
  addAcpCommand(program, io);
  addCallCommand(program, io, filterBy);
  addLogsCommand(program, io, setExit);
  addSessionsCommand(program, io);
  addContextCommand(program, io);
  addKnowledgeCommand(program, io);
  addMemoryCommand(program, io);
  addUsageCommand(program, io);
  addAgentsCommand(program, io);
  addWorkspaceCommand(program, io);
  addToolsCommand(program, io);
  addApprovalsCommand(program, io);
  addSkillsCommand(program, io);
  addMcpCommand(program, io, setExit);
  addImportCommand(program, io, setExit);
  addRunsCommand(program, io, setExit);
  addGraphCommand(program, io, setExit);
  addEvalCommand(program, io, setExit);
  addCronCommand(program, io);
  addHeartbeatCommand(program, io);
  addWebhooksCommand(program, io);
  addChannelsCommand(program, io, setExit);
  addInboxCommand(program, io);
  addDiagnosisCommands(program, io, setExit);
  addAuditCommand(program, io);
  addModelsCommand(program, io, setExit);
  addProvidersCommand(program, io, setExit);
  addMediaCommand(program, io);
  addTokensCommand(program, io);
  addConfigCommand(program, io, setExit);
  addSecretsCommand(program, io);
  addConnectCommand(program, io);
  addBackupCommand(program, io);
  addRestoreCommand(program, io);
  addStorageCommand(program, io);
  addDoctorCommand(program, io, setExit);
  addCompletionCommand(program, io);
  program.on('command:*', ([word = '']: string[]) => {
    throw unknownCommand(word, program);
  });
  return program;
}

/** Hints for commands that users try first. */
const elsewhere: Readonly<Record<string, string>> = {
  init: '`gatehouse setup` connects a model.',
  onboard: '`gatehouse setup` connects a model.',
  version: '`gatehouse --version` prints it, `gatehouse status` that of the daemon.',
  login: 'There is no login command: use --token-file FILE, GATEHOUSE_TOKEN, or the file `token` in the home folder.',
  stop: 'Ctrl-C or SIGTERM stops the daemon; `gatehouse call gateway.restart` restarts it.',
  restart: '`gatehouse call gateway.restart` restarts the daemon.',
};

function unknownCommand(word: string, program: Command): CliError {
  return usageError(`Unknown command \`${plainText(word)}\`.`, hintFor(word, program));
}

const maxMeant = 3;

/** Searches commands of the top, then those of all groups, then methods. */
function hintFor(word: string, program: Command): string {
  const said = Object.hasOwn(elsewhere, word) ? elsewhere[word] : undefined;
  if (said !== undefined) return said;
  const within = program.commands.flatMap((group) => group.commands.map((command) => ({ group: group.name(), name: command.name() })));
  const same = within.filter(({ name }) => name === word);
  const meant = nearest(
    word,
    program
      .createHelp()
      .visibleCommands(program)
      .map((command) => command.name()),
  );
  const inner = nearest(
    word,
    within.map(({ name }) => name),
  );
  const paths = (same.length > 0 ? same : meant === undefined ? within.filter(({ name }) => name === inner) : []).map(
    ({ group, name }) => `${group} ${name}`,
  );
  if (same.length === 0 && meant !== undefined) paths.push(meant);
  // No command has a dot in its name, every method has.
  if (paths.length === 0 && /^\w+\.\w/.test(word))
    return `Methods are called by \`gatehouse call ${plainText(word)}\`; \`gatehouse call --list\` lists them.`;
  if (paths.length === 0) return '`gatehouse --help` lists the commands.';
  return `Did you mean ${paths
    .slice(0, maxMeant)
    .map((path) => `\`gatehouse ${path}\``)
    .join(' or ')}?`;
}

function report(error: unknown, asJson: boolean, io: Io): number {
  const { code, message, hint, exitCode: exit } = describeFailure(error);
  if (asJson) printLine(io.stderr, JSON.stringify({ error: { code, message, ...(hint === undefined ? {} : { hint }) } }));
  else {
    printLine(io.stderr, `error: ${message}`);
    if (hint !== undefined) printLine(io.stderr, `hint: ${hint}`);
  }
  return exit;
}

/** Detects JSON output anywhere, even in a line that could not be parsed. The `--json` of `call` holds parameters. */
function wantsJson(args: readonly string[]): boolean {
  return args.some(
    (arg, index) =>
      arg === '--output=json' ||
      arg === '-ojson' ||
      (arg === '--json' && args[0] !== 'call') ||
      ((arg === '--output' || arg === '-o') && args[index + 1] === 'json'),
  );
}
