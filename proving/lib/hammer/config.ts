import {
  addConfigVersion,
  dropConfigVersion,
  markConfigFile,
  readConfigState,
  squashConfigVersions,
} from '../../../packages/server/src/features/operations/settings/store.ts';
import { atMs, driver, type Driver, type Names, namesOf, principalId, type Writer } from './driver.ts';

interface Added {
  /** Numbers that this process got. */
  readonly numbers: readonly number[];
}

const changes = 6;

async function add(writer: Writer, names: Names, index: string): Promise<number | undefined> {
  const { newest } = await writer.read(readConfigState, { homeId: names.id('home') });
  const number = (newest?.number ?? 0) + 1;
  const version = {
    number,
    digest: names.id('digest', index),
    sealedText: '',
    atMs,
    principalId,
    origin: 'rpc' as const,
    summary: names.round,
    section: null,
    key: null,
    traceId: null,
  };
  const outcome = await writer.write(addConfigVersion, { version, audit: names.audit(`config-${index}`) }, ['conflict']);
  return 'value' in outcome ? number : undefined;
}

/** Versions of the configuration: of those that are added behind the same one, one is, and old ones go while others come. */
const versions: Driver<{ readonly round: string }, Added> = {
  name: 'config-versions',
  async prepare(_db, names) {
    return { round: names.round };
  },
  async run(writer, { round }, side) {
    const names = namesOf(round);
    const numbers: number[] = [];
    for (let index = 0; index < changes; index += 1) {
      const number = await add(writer, names, `${side}-${index}`);
      if (index === 4) await writer.write(squashConfigVersions, { beforeMs: atMs, audit: names.audit(`squashed-${side}`) });
      if (number === undefined) continue;
      // One of them cannot be written to the file.
      if (index === 2) await writer.write(dropConfigVersion, { number, audit: names.audit(`dropped-${side}`) });
      else {
        numbers.push(number);
        await writer.write(markConfigFile, { homeId: names.id('home', side), version: number, digest: names.id('digest', `${side}-${index}`) });
      }
    }
    return { numbers };
  },
  async check(look, { round }, [first, second]) {
    const all = [...first.numbers, ...second.numbers];
    const rows = (await look(`select number from config_version where summary = '${round}' order by number`)).map(({ number }) => Number(number));
    const wrong: string[] = [];
    if (new Set(all).size !== all.length) wrong.push(`a number was given twice: ${all.join(', ')}`);
    for (const number of all) if (!rows.includes(number)) wrong.push(`version ${number} was acknowledged and is missing`);
    return wrong;
  },
};

export const configDrivers: readonly Driver[] = [driver(versions)];
