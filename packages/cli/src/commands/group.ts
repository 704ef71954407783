import type { Command } from 'commander';
import { usageError } from '../failure.ts';
import { nearest } from '../nearest.ts';

/** A command of commands, `list` when none is named; a wrong name must not be taken for a word of `list`. */
export function addGroup(program: Command, name: string): Command {
  return program.command(name).hook('preSubcommand', (group, chosen) => {
    const word = group.args[0];
    if (word === undefined || word.startsWith('-') || word === chosen.name()) return;
    const names = group.commands.map((command) => command.name());
    const meant = nearest(word, names);
    throw usageError(`There is no command \`${name} ${word}\`: expected ${names.join(', ')}.`, meant && `Did you mean \`${name} ${meant}\`?`);
  });
}
