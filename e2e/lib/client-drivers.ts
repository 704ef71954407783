import { join } from 'node:path';
import type { PackageGroup } from './client-packages.ts';

/** Returns a call of the client's own tool that writes a file. */
interface ToolCall {
  readonly name: string;
  readonly args: object;
}

/** How to start a third-party command line, and which of its tools the scripted model calls. */
export interface ClientDriver {
  readonly id: string;
  readonly group: PackageGroup;
  /** Path below the folder of its packages; a script runs under this Node. */
  readonly program: string;
  readonly env?: Readonly<Record<string, string>>;
  first(prompt: string): readonly string[];
  /** Continues the last conversation; absent where the client cannot in one command. */
  again?(prompt: string): readonly string[];
  write(file: string, content: string): ToolCall;
}

const platform = `${process.platform}-${process.arch}`;
const triple = `${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-unknown-linux-musl`;

export const drivers: readonly ClientDriver[] = [
  {
    id: 'codex',
    group: 'responses',
    program: join('node_modules/@openai', `codex-${platform}`, 'vendor', triple, 'bin/codex'),
    first: (prompt) => ['exec', ...codexFlags, prompt],
    again: (prompt) => ['exec', 'resume', '--last', ...codexFlags, prompt],
    write: (file, content) => ({ name: 'exec_command', args: { cmd: `printf %s ${content} > ${file}` } }),
  },
  {
    id: 'pi',
    group: 'chat',
    program: 'node_modules/@mariozechner/pi-coding-agent/dist/cli.js',
    env: { PI_OFFLINE: '1', PI_SKIP_VERSION_CHECK: '1', PI_TELEMETRY: '0' },
    first: (prompt) => ['-p', prompt],
    again: (prompt) => ['-c', '-p', prompt],
    write: (path, content) => ({ name: 'write', args: { path, content } }),
  },
  {
    id: 'claude-code',
    group: 'messages',
    program: join('node_modules/@anthropic-ai', `claude-code-${platform}`, 'claude'),
    env: { CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', DISABLE_AUTOUPDATER: '1', DISABLE_TELEMETRY: '1', DISABLE_ERROR_REPORTING: '1' },
    first: (prompt) => ['-p', '--permission-mode', 'acceptEdits', prompt],
    again: (prompt) => ['-p', '-c', '--permission-mode', 'acceptEdits', prompt],
    write: (path, content) => ({ name: 'Write', args: { file_path: path, content } }),
  },
  {
    id: 'opencode',
    group: 'more',
    program: join('node_modules', `opencode-${platform}`, 'bin/opencode'),
    env: {
      OPENCODE_DISABLE_AUTOUPDATE: '1',
      OPENCODE_DISABLE_MODELS_FETCH: '1',
      OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
      OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
    },
    first: (prompt) => ['run', prompt],
    again: (prompt) => ['run', '-c', prompt],
    write: (filePath, content) => ({ name: 'write', args: { filePath, content } }),
  },
  {
    id: 'continue',
    group: 'more',
    program: 'node_modules/@continuedev/cli/dist/cn.js',
    env: { CONTINUE_CLI_ENABLE_TELEMETRY: '0', CONTINUE_METRICS_ENABLED: '0', CONTINUE_CLI_AUTO_UPDATED: '1' },
    first: (prompt) => ['-p', '--auto', prompt],
    again: (prompt) => ['-p', '--auto', '--resume', prompt],
    write: (filepath, content) => ({ name: 'Write', args: { filepath, content } }),
  },
  {
    id: 'cline',
    group: 'more',
    program: join('node_modules/@cline', `cli-${platform}`, 'bin/cline'),
    env: { CLINE_TELEMETRY_DISABLED: '1', CLINE_NO_AUTO_UPDATE: '1' },
    first: (prompt) => ['-P', 'openai-compatible', '--auto-approve', 'true', prompt],
    write: (path, content) => ({ name: 'editor', args: { command: 'create', path, new_text: content } }),
  },
  {
    id: 'qwen-code',
    group: 'more',
    program: 'node_modules/@qwen-code/qwen-code/cli.js',
    env: { NODE_OPTIONS: `--import=${join(import.meta.dirname, 'plain-fetch.mjs')}` },
    first: (prompt) => ['-y', '-p', prompt],
    again: (prompt) => ['-y', '-c', '-p', prompt],
    write: (path, content) => ({ name: 'write_file', args: { file_path: path, content } }),
  },
];

const codexFlags = ['--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox'];
