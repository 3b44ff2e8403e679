package lab

import "path/filepath"

const tomcatHome = "/usr/share/tomcat10"

// java returns the command of a Java program: its class path, and its main class with arguments or "-jar" and a file. Its temporary
// files stay in the folder of the system, and names of files are UTF-8.
func (c Config) java(s *System, args ...string) []string {
	s.env = append(s.env, "LC_ALL=C.UTF-8")
	return append([]string{s.program(c, "java"), "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
		"-Djava.io.tmpdir=" + filepath.Join(s.Dir, "tmp")}, args...)
}

// tomcat returns the command of Tomcat with the configuration server.xml and web.xml in Dir/conf.
func (c Config) tomcat(s *System) []string {
	return c.java(s, "-cp", tomcatHome+"/bin/bootstrap.jar:"+tomcatHome+"/bin/tomcat-juli.jar",
		"-Dcatalina.home="+tomcatHome, "-Dcatalina.base="+s.Dir, "org.apache.catalina.startup.Bootstrap", "start")
}
