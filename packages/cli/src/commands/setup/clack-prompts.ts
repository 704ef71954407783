import { autocomplete, isCancel, log, password, select, text } from '@clack/prompts';
import type { Io } from '../../io.ts';
import { interrupted, type Prompts } from './prompts.ts';

/** Lists with more entries are searched by typing. */
const maxListed = 12;
const maxVisible = 10;

/** Questions with the arrow keys, in place. They go to standard error: standard output is for answers. */
export function createClackPrompts({ stdin: input, stderr: output }: Io): Prompts {
  const common = { input, output };
  return {
    async select({ message, choices, initial }) {
      const options = choices.map(({ value, label, hint }) => ({ value, label, ...(hint !== undefined && { hint }) }));
      const asked = { ...common, message, options, maxItems: maxVisible, ...(initial !== undefined && { initialValue: initial }) };
      if (choices.length <= maxListed) return answered(await select(asked));
      // With a search that finds nothing there is no value to confirm.
      const validate = (value: unknown) => (value === undefined ? 'Nothing is found: shorten the search, then select one' : undefined);
      return answered(await autocomplete({ ...asked, placeholder: 'Type to search', validate }));
    },
    async secret(message) {
      return answered(await password({ ...common, message }));
    },
    async text({ message, initial, placeholder, check }) {
      const value = await text({
        ...common,
        message,
        ...(initial !== undefined && { initialValue: initial }),
        ...(placeholder !== undefined && { placeholder }),
        validate: (typed) => check?.(typed ?? ''),
      });
      return answered(value).trim();
    },
    note: (message) => log.message(message, { output }),
    success: (message) => log.success(message, { output }),
    failure: (message) => log.error(message, { output }),
  };
}

function answered(value: string | symbol | undefined): string {
  if (isCancel(value) || typeof value === 'symbol') throw interrupted();
  return value ?? '';
}
