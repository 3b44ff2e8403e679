// The script of the live page.
import "./chart";
