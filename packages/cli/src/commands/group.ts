import type { Command } from 'commander';
import { usageError } from '../failure.ts';
import { nearest } from '../nearest.ts';

/** Adds a group of commands with `list` as the default; an unknown name must not become an argument of `list`. */
export function addGroup(program: Command, name: string): Command {
  return program.command(name).hook('preSubcommand', (group, chosen) => {
    const word = group.args[0];
    if (word === undefined || word.startsWith('-') || word === chosen.name() || chosen.aliases().includes(word)) return;
    const names = group.commands.map((command) => command.name());
    const meant = nearest(word, names);
    throw usageError(`Unknown command \`${name} ${word}\`: expected ${names.join(', ')}.`, meant && `Did you mean \`${name} ${meant}\`?`);
  });
}
