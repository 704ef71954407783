import { Argument, type Command, type Option } from 'commander';
import { type Io, printLine } from '../io.ts';

const shells = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof shells)[number];

/** `gatehouse completion`: the script is made from the commands themselves and completes without starting a program. */
export function addCompletionCommand(program: Command, io: Io): void {
  program
    .command('completion')
    .summary('print a script that completes commands in a shell')
    .description(
      [
        'Prints a script with which a shell completes commands, options and their values.',
        '',
        'bash: add `source <(gatehouse completion bash)` to ~/.bashrc',
        'zsh:  add `source <(gatehouse completion zsh)` to ~/.zshrc, after compinit',
        'fish: gatehouse completion fish > ~/.config/fish/completions/gatehouse.fish',
      ].join('\n'),
    )
    .addArgument(new Argument('<shell>', 'the shell').choices(shells))
    .action((shell: Shell) => printLine(io.stdout, scripts[shell](levelsOf(program))));
}

interface Term {
  readonly name: string;
  readonly text: string;
  /** Allowed values of an option; empty for any. */
  readonly values: readonly string[];
  readonly takesValue: boolean;
}

/** A command with what may follow it. */
interface Level {
  /** Its words without `gatehouse`, such as `cron add`. */
  readonly path: string;
  readonly words: readonly Term[];
}

function levelsOf(command: Command, path = ''): readonly Level[] {
  const help = command.createHelp();
  const commands = help.visibleCommands(command).filter((one) => one.name() !== 'help');
  const words = [
    ...commands.map((one) => ({ name: one.name(), text: firstLine(one.summary() || one.description()), values: [], takesValue: false })),
    ...command.registeredArguments.flatMap(({ argChoices = [], description }) =>
      argChoices.map((name) => ({ name, text: firstLine(description), values: [], takesValue: false })),
    ),
    ...help.visibleOptions(command).flatMap(optionTerms),
  ];
  return [{ path, words }, ...commands.flatMap((one) => levelsOf(one, path === '' ? one.name() : `${path} ${one.name()}`))];
}

const optionTerms = ({ long, short, description, argChoices = [], required, optional }: Option): readonly Term[] =>
  [long, short].flatMap((name) => (name ? [{ name, text: firstLine(description), values: argChoices, takesValue: required || optional }] : []));

const firstLine = (text: string): string => text.split('\n', 1)[0] ?? '';

/** Returns a text in single quotes. */
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** Words of the line that lead to a command; values of options are not among them. */
const known = (levels: readonly Level[]): string =>
  levels
    .slice(1)
    .map(({ path }) => quoted(path))
    .join('|');

/** Options with listed values, by `command option`. */
const choicesOf = (levels: readonly Level[]): readonly string[] =>
  levels.flatMap(({ path, words }) =>
    words
      .filter(({ values }) => values.length > 0)
      .map(({ name, values }) => `    ${quoted(`${path} ${name}`)}) values=${quoted(values.join(' '))} ;;`),
  );

/** Options whose value can be anything: files are offered. */
const freeOf = (levels: readonly Level[]): string =>
  levels
    .flatMap(({ path, words }) =>
      words.filter(({ takesValue, values }) => takesValue && values.length === 0).map(({ name }) => quoted(`${path} ${name}`)),
    )
    .join('|');

/** The command that is being written, in `at`, as far as its words are known. */
const findPath = (levels: readonly Level[], words: string): string => `  local word at=''
  for word in ${words}; do
    case "\${at:+$at }$word" in
      ${known(levels)}) at="\${at:+$at }$word" ;;
    esac
  done`;

function bashScript(levels: readonly Level[]): string {
  const each = levels.map(({ path, words }) => `    ${quoted(path)}) words=${quoted(words.map(({ name }) => name).join(' '))} ;;`);
  return `_gatehouse() {
  local current="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" words='' values=''
${findPath(levels, '"${COMP_WORDS[@]:1:COMP_CWORD-1}"')}
  case "$at $before" in
${choicesOf(levels).join('\n')}
    ${freeOf(levels)}) COMPREPLY=($(compgen -f -- "$current")); return ;;
  esac
  if [ -n "$values" ]; then COMPREPLY=($(compgen -W "$values" -- "$current")); return; fi
  case "$at" in
${each.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _gatehouse gatehouse`;
}

function zshScript(levels: readonly Level[]): string {
  const each = levels.map(
    ({ path, words }) => `    ${quoted(path)}) words_of=(${words.map(({ name, text }) => quoted(`${name}:${text}`)).join(' ')}) ;;`,
  );
  return `_gatehouse() {
  local before="\${words[CURRENT-1]}" values=''
  local -a words_of
${findPath(levels, '"${(@)words[2,CURRENT-1]}"')}
  case "$at $before" in
${choicesOf(levels).join('\n')}
    ${freeOf(levels)}) _files; return ;;
  esac
  if [ -n "$values" ]; then compadd -- \${=values}; return; fi
  case "$at" in
${each.join('\n')}
  esac
  _describe 'gatehouse' words_of || _files
}
compdef _gatehouse gatehouse`;
}

function fishScript(levels: readonly Level[]): string {
  const lines = levels.flatMap(({ path, words }) =>
    words.map(({ name, text, values, takesValue }) => {
      const at = `complete -c gatehouse -n ${quoted(`__gatehouse_at ${quoted(path)}`)} -d ${quoted(text)}`;
      if (!name.startsWith('-')) return `${at} -f -a ${name}`;
      const flag = name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`;
      if (values.length > 0) return `${at} ${flag} -x -a ${quoted(values.join(' '))}`;
      return `${at} ${flag}${takesValue ? ' -r' : ''}`;
    }),
  );
  const paths = levels
    .slice(1)
    .map(({ path }) => quoted(path))
    .join(' ');
  return `function __gatehouse_at
  set -l path ''
  for word in (commandline -opc)[2..]
    set -l next (string trim -- "$path $word")
    contains -- $next ${paths}; and set path $next
  end
  test "$path" = "$argv[1]"
end
${lines.join('\n')}`;
}

const scripts: Readonly<Record<Shell, (levels: readonly Level[]) => string>> = { bash: bashScript, zsh: zshScript, fish: fishScript };
