import { expect, it } from 'vitest';
import { StorageConfig } from './config.ts';

const url = 'postgres://gatehouse:open-sesame@db.example.org/gatehouse';
const problemsOf = (section: object) =>
  StorageConfig()
    .safeParse({ driver: 'postgres', ...section })
    .error?.issues.map(({ path, message }) => `${path.join('.')} ${message}`) ?? [];

it('needs the URL of a server', () => {
  expect(problemsOf({})).toEqual(['url is missing; driver "postgres" needs it']);
  expect(problemsOf({ url })).toEqual([]);
});

it('refuses a URL whose parameters would turn off the TLS that ssl or sslCaPath demand', () => {
  for (const query of ['sslmode=disable', 'sslmode=no-verify', 'ssl=0', 'application_name=x&sslrootcert=/ca.pem'])
    for (const demand of [{ ssl: true }, { sslCaPath: 'ca.pem' }]) {
      const [problem, ...others] = problemsOf({ url: `${url}?${query}`, ...demand });
      expect(problem).toMatch(/^url names ssl\w*, with which ssl and sslCaPath would have no effect/);
      expect(problem).not.toContain('open-sesame');
      expect(others).toEqual([]);
    }
});

it('takes parameters about TLS from the URL where nothing else speaks of it', () => {
  expect(problemsOf({ url: `${url}?sslmode=verify-full&sslrootcert=/ca.pem` })).toEqual([]);
  expect(problemsOf({ url: `${url}?application_name=ssl`, ssl: true })).toEqual([]);
});
