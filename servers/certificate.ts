/** A private certificate authority and one server certificate for 127.0.0.1 and localhost, made by openssl. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { ensureDebianPackage } from "./server-process.ts";

const run = promisify(execFile);

export interface Certificate {
  /** PEM of the authority: what a client has to trust. */
  readonly authority: string;
  /** Paths, for the server's settings. */
  readonly authorityFile: string;
  readonly certificateFile: string;
  readonly keyFile: string;
}

/** Writes the files into `directory`. Valid for one day. About 50 ms. */
export async function createCertificate(directory: string): Promise<Certificate> {
  await ensureDebianPackage({
    what: "openssl",
    packages: ["openssl"],
    present: () => existsSync("/usr/bin/openssl"),
  });
  const path = (name: string) => join(directory, name);
  const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"];
  await writeFile(path("server.ext"), "subjectAltName=IP:127.0.0.1,DNS:localhost\n");
  const authority = [
    "-x509",
    "-keyout",
    path("ca.key"),
    "-out",
    path("ca.crt"),
    "-subj",
    "/CN=holdfast test authority",
  ];
  await run("openssl", ["req", ...newKey, ...authority]);
  const request = ["-keyout", path("server.key"), "-out", path("server.csr"), "-subj", "/CN=localhost"];
  await run("openssl", ["req", ...newKey.slice(0, -2), ...request]);
  const signed = ["-in", path("server.csr"), "-out", path("server.crt"), "-extfile", path("server.ext"), "-days", "1"];
  const signer = ["-CA", path("ca.crt"), "-CAkey", path("ca.key"), "-CAcreateserial"];
  await run("openssl", ["x509", "-req", ...signed, ...signer]);
  return {
    authority: await readFile(path("ca.crt"), "utf8"),
    authorityFile: path("ca.crt"),
    certificateFile: path("server.crt"),
    keyFile: path("server.key"),
  };
}
