// Quantities as texts, in exactly the format of the Go package internal/unit and of
// figure.Axis: the server's pages and the chart's readout must not differ.
// format_test.go compares the two implementations.
import type { Axis } from "./figure";

const finite = (x: number): boolean => Number.isFinite(x);

/** fixed formats x with a number of decimals; ties round to the even digit, as in Go. */
function fixed(x: number, decimals: number): string {
  if (Math.abs(x) >= 1e21) return BigInt(x).toString(); // toFixed would write an exponent
  const exact = Math.abs(x).toFixed(Math.min(100, decimals + 60)); // toFixed is exact, and 60 digits identify a tie
  const point = exact.indexOf(".");
  const rest = exact.slice(point + 1 + decimals);
  let text = Math.abs(x).toFixed(decimals); // rounds a tie up
  if (/^50*$/.test(rest)) {
    const down = decimals === 0 ? exact.slice(0, point) : exact.slice(0, point + 1 + decimals);
    if ("02468".includes(down.slice(-1))) text = down;
  }
  return (x < 0 || Object.is(x, -0) ? "-" : "") + text;
}

/** plain formats x with all its digits and without an exponent. */
function plain(x: number): string {
  const [mantissa = "", exponent] = String(x).split("e");
  if (exponent === undefined) return Object.is(x, -0) ? "-0" : mantissa;
  const sign = mantissa.startsWith("-") ? "-" : "";
  const digits = mantissa.replace("-", "").replace(".", "");
  const e = Number(exponent);
  if (e < 0) return sign + "0." + "0".repeat(-e - 1) + digits;
  return sign + digits + "0".repeat(e + 1 - digits.length);
}

/** decimals returns the number of decimals for three significant digits. */
function decimals(x: number): number {
  let e = Math.floor(Math.log10(Math.abs(x)));
  if (Math.abs(x) >= 9.995 * 10 ** e) e++; // rounds up to a further digit
  return Math.max(2 - e, 0);
}

const three = (x: number): string => (x === 0 ? "0" : fixed(x, Math.min(decimals(x), 12)));

/** significant formats x with three significant digits, without a unit. */
export function significant(x: number): string {
  const most = 9; // decimals
  return !finite(x) || Math.abs(x) < 0.5 * 10 ** -most ? "0" : fixed(x, Math.min(decimals(x), most));
}

const prefixes = ["", "k", "M", "G", "T", "P", "E"];

/** leastShown is the smallest amount or rate that is not shown as 0. */
const leastShown = 1e-6;

function scaled(x: number, unit: string): string {
  if (!finite(x)) return "n/a";
  if (Math.abs(x) < leastShown) return "0 " + unit;
  let n = 0;
  for (; Math.abs(x) >= 999.5 && n < prefixes.length - 1; n++) x /= 1000;
  if (n === 0 && Number.isInteger(x)) return plain(x) + " " + unit;
  return three(x) + " " + prefixes[n] + unit;
}

/** trim removes zeros at the end of the decimals in "1.20 ms". */
function trim(text: string): string {
  const space = text.indexOf(" ");
  let number = text.slice(0, space);
  if (number.includes(".")) number = number.replace(/0+$/, "").replace(/\.$/, "");
  return number + text.slice(space);
}

/** bits formats bytes per second: "8.39 Mbit/s". */
export const bits = (bytesPerSecond: number): string => scaled(8 * bytesPerSecond, "bit/s");

/** bytes formats an amount: "1.05 MB". */
export const bytes = (n: number): string => scaled(n, "B");

/** count formats a number: "42", "8.32 k". */
export function count(n: number): string {
  if (Number.isInteger(n) && Math.abs(n) < 1000) return plain(n);
  const text = scaled(n, "");
  return text.endsWith(" ") ? text.slice(0, -1) : text;
}

/** percent formats a ratio: "1.2%" for 0.012. */
export function percent(ratio: number): string {
  if (!finite(ratio)) return "n/a";
  if (ratio > 0 && ratio < 1e-5) return "<0.001%";
  return trim(three(100 * ratio) + " %").replace(" ", "");
}

/** seconds formats a duration: "1.2 ms", "17.5 s", "2m5s". */
export function seconds(s: number): string {
  if (!finite(s)) return "n/a";
  const size = Math.abs(s);
  if (size >= 1e9) return trim(scaled(s, "s"));
  if (size >= 120) return (s < 0 ? "-" : "") + whole(Math.round(size));
  if (size >= 0.9995 || s === 0) return trim(scaled(s, "s"));
  if (size >= 0.9995e-3) return trim(three(s * 1e3) + " ms");
  if (size >= 0.9995e-6) return trim(three(s * 1e6) + " us");
  return trim(three(s * 1e9) + " ns");
}

/** whole formats whole seconds as days, hours, minutes and seconds. */
function whole(s: number): string {
  let text = "";
  for (const [name, span] of [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]] as const) {
    const n = Math.floor(s / span);
    if (n > 0) text += n + name;
    s -= n * span;
  }
  return text;
}

/** five rounds x to five significant digits; ties round to the even digit. */
function five(x: number): number {
  const e = Number(x.toExponential(20).split("e")[1]);
  if (e <= 4) return Number(fixed(x, Math.min(100, 4 - e)));
  const unit = 10 ** (e - 4);
  const tie = (Math.abs(x) % unit) * 2 === unit && Math.floor(Math.abs(x) / unit) % 2 === 0;
  return tie ? Math.sign(x) * (Math.abs(x) - unit / 2) : Number(x.toPrecision(5));
}

/** tick formats the number at a tick, without an exponent if the number is below ten million. */
export function tick(x: number): string {
  if (!finite(x)) return Number.isNaN(x) ? "NaN" : x > 0 ? "+Inf" : "-Inf";
  const short = five(x);
  if (Math.abs(short) < 1e7) return plain(short);
  const [mantissa, e = ""] = short.toExponential(4).split("e+");
  return trim(mantissa + " ").trimEnd() + "e+" + e.padStart(2, "0");
}

/** text formats the number at a tick of an axis, like figure.Axis.Text. */
export function text(axis: Axis, x: number): string {
  return axis.duration ? seconds(x) : tick(x * axis.factor);
}

/** show formats a value of an axis with its unit and a suitable prefix. */
export function show(axis: Axis, x: number): string {
  if (axis.duration || /^(ns|us|ms|s|min|h)$/.test(axis.unit)) return seconds(x);
  if (axis.unit === "%") return percent((x * axis.factor) / 100);
  const [, prefix = "", name = ""] = /^([kMGTP]?)(bit\/s|B\/s|B)$/.exec(axis.unit) ?? [];
  const shown = x * axis.factor;
  if (name !== "") return scaled(shown * 1000 ** prefixes.indexOf(prefix), name);
  const [, thousands = "", things = axis.unit] = /^([kMGTP]) (.+)$/.exec(axis.unit) ?? [];
  const n = count(shown * 1000 ** prefixes.indexOf(thousands));
  if (things === "") return n;
  return n + " " + (n === "1" && /^[a-z ]+s$/.test(things) ? things.slice(0, -1) : things);
}
