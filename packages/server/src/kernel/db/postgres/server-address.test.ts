import { expect, test } from 'vitest';
import { placeOf } from './place.ts';
import { serverAddress, serversOf } from './server-address.ts';

test('a URL lists its servers, each with user, database and parameters', () => {
  expect(serversOf('postgres://u:p@one/data?sslmode=require')).toEqual(['postgres://u:p@one/data?sslmode=require']);
  expect(serversOf('postgres://u:p@one:5433,two/data?target_session_attrs=read-write')).toEqual([
    'postgres://u:p@one:5433/data?target_session_attrs=read-write',
    'postgres://u:p@two/data?target_session_attrs=read-write',
  ]);
  expect(serversOf('postgresql://one,two,[::1]:5/data')).toEqual(['postgresql://one/data', 'postgresql://two/data', 'postgresql://[::1]:5/data']);
  expect(serversOf('postgres://u:a,b@one/data?options=a,b')).toEqual(['postgres://u:a,b@one/data?options=a,b']);
});

test('the place of several servers names them without the secrets', () => {
  expect(placeOf('postgres://u:p@one:5433,two/data?sslmode=require')).toBe('postgres://one:5433,two/data');
  expect(placeOf('postgres://u:p@one:port/data')).toBe('postgres');
});

test('a file without certificates is not an authority', () => {
  const address = (sslCaPath: string) => serverAddress({ url: 'postgres://one/data', ssl: true, sslCaPath }, import.meta.dirname);
  expect(() => address('server-address.test.ts')).toThrow(
    /^storage\.sslCaPath: cannot use .*server-address\.test\.ts: .*expected certificates in PEM$/,
  );
  expect(() => address('nowhere.pem')).toThrow(/^storage\.sslCaPath: cannot use .*nowhere\.pem: ENOENT/);
});
